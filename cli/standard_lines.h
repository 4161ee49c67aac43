// The standard input line by line, for commands that answer each line with one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace nunchi::cli {

// Before it waits for input it flushes stdout, so that whoever sends lines one at a time gets each
// answer before the next. A line ends with "\n" or "\r\n", which is left out; the last one may end
// with the input. Memory does not grow with the input.
class StandardLines {
 public:
  // Bytes that are kept of a line; the rest of it is skipped.
  static constexpr std::size_t kLongest = std::size_t{1} << 20;

  StandardLines();

  // False at the end of the input. Throws Error when it cannot be read or stdout not be written.
  bool next(std::string& line);
  // How many lines were longer than is kept.
  std::int64_t cut_lines() const { return cut_lines_; }

 private:
  bool fill();

  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of what is waiting in the buffer
  std::int64_t cut_lines_ = 0;
};

}  // namespace nunchi::cli
