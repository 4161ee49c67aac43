// Allocates ranges of rows of one buffer, first fit; they are released in any order. Bookkeeping on
// the host only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace nunchi::nn {

class RowRanges {
 public:
  explicit RowRanges(std::int64_t rows);

  // Takes the first free range that is long enough and returns its first row; nullopt if there is
  // none. For 0 rows returns 0 and takes nothing.
  std::optional<std::int64_t> take(std::int64_t rows);
  // Releases a whole range: `begin` from take(rows), with the same `rows`.
  void release(std::int64_t begin, std::int64_t rows);

  std::int64_t rows() const { return rows_; }
  std::int64_t free_rows() const { return free_rows_; }

 private:
  std::int64_t rows_, free_rows_;
  std::map<std::int64_t, std::int64_t> free_;  // first row → rows; adjacent ranges are merged
};

}  // namespace nunchi::nn
