// Lines from a file descriptor as they arrive: a pipe, a terminal or a file.
#pragma once

#include <cstdint>
#include <string>

#include "nunchi/data/lines.h"

namespace nunchi {

// Does not own the descriptor. Lines end with "\n" or "\r\n"; a byte order mark at the beginning is
// left out. Memory is bounded: a line longer than `longest` bytes is cut there, between characters.
// The sizes of the reads do not change the result.
class LineStream final : public LineSource {
 public:
  explicit LineStream(int descriptor, std::size_t longest = std::size_t{1} << 20)
      : descriptor_(descriptor), longest_(longest) {}

  // Throws Error when reading fails.
  bool next(std::string& line) override;
  bool is_waiting() override;
  // Among the lines that next() has returned.
  std::int64_t cut_lines() const override { return cut_lines_; }

 private:
  bool has_line() const;
  bool fill();  // false at the end

  int descriptor_;
  std::size_t longest_;
  std::string buffer_;
  std::size_t begin_ = 0;     // of the bytes that next() has not returned
  std::size_t searched_ = 0;  // no line ends before this
  bool ended_ = false;
  bool first_ = true;
  bool skipping_ = false;  // the rest of a line that is too long; its beginning is in the buffer
  std::int64_t cut_lines_ = 0;
};

}  // namespace nunchi
