// Lines from a file descriptor as they arrive: a pipe, a terminal or a file.
#pragma once

#include <cstdint>
#include <string>

#include "nunchi/data/lines.h"

namespace nunchi {

// Does not own the descriptor. Lines end with "\n" or "\r\n"; a byte order mark at the beginning is
// left out. Memory is bounded: a line longer than `max_line_bytes` is cut there, between
// characters. The result does not depend on how many bytes each read returns.
class LineStream final : public LineSource {
 public:
  explicit LineStream(int descriptor, std::size_t max_line_bytes = std::size_t{1} << 20)
      : descriptor_(descriptor), max_line_bytes_(max_line_bytes) {}

  // Throws Error when reading fails.
  bool next(std::string& line) override;
  bool is_ready() override;
  // Counts only lines that next() has returned.
  std::int64_t cut_lines() const override { return cut_lines_; }

 private:
  bool has_line() const;
  bool fill();  // returns false at the end of the input

  int descriptor_;
  std::size_t max_line_bytes_;
  std::string buffer_;
  std::size_t begin_ = 0;     // the first byte that next() has not returned
  std::size_t searched_ = 0;  // buffer_ has no "\n" from begin_ to here
  bool ended_ = false;
  bool is_first_line_ = true;
  bool skipping_ = false;  // skipping the rest of a line whose beginning is in buffer_
  std::int64_t cut_lines_ = 0;
};

}  // namespace nunchi
