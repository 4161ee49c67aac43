// Ranges of rows of one buffer that are taken and given back in any order. On the host only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace nunchi::nn {

class RowRanges {
 public:
  explicit RowRanges(std::int64_t rows);

  // The first row of the first range that is long enough; nothing when there is none. A range of no
  // rows begins at 0 and takes nothing.
  std::optional<std::int64_t> take(std::int64_t rows);
  // `rows` as many as were taken there.
  void release(std::int64_t begin, std::int64_t rows);

  std::int64_t rows() const { return rows_; }
  std::int64_t free_rows() const { return free_rows_; }

 private:
  std::int64_t rows_, free_rows_;
  std::map<std::int64_t, std::int64_t> free_;  // begin -> rows; no two are adjacent
};

}  // namespace nunchi::nn
