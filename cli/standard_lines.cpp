#include "cli/standard_lines.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "nunchi/base/error.h"

namespace nunchi::cli {

StandardLines::StandardLines() : buffer_(std::size_t{1} << 16) {}

bool StandardLines::fill() {
  if (std::fflush(stdout) != 0) throw Error("the output could not be written.");
  while (true) {
    const auto got = ::read(STDIN_FILENO, buffer_.data(), buffer_.size());
    if (got >= 0) {
      begin_ = 0;
      end_ = static_cast<std::size_t>(got);
      return got > 0;
    }
    if (errno != EINTR) {
      throw Error(std::string("cannot read the standard input: ") + std::strerror(errno));
    }
  }
}

bool StandardLines::next(std::string& line) {
  line.clear();
  std::size_t length = 0;  // of the whole line
  bool ended = false;
  while (!ended && (begin_ < end_ || fill())) {
    const std::string_view waiting(buffer_.data() + begin_, end_ - begin_);
    const std::string_view part = waiting.substr(0, waiting.find('\n'));
    ended = part.size() < waiting.size();
    begin_ += part.size() + (ended ? 1 : 0);
    length += part.size();
    // One byte more, which may be the '\r' before the end.
    line += part.substr(0, std::min(part.size(), kLongest + 1 - line.size()));
  }
  if (ended && length == line.size() && line.ends_with('\r')) {
    line.pop_back();
    --length;
  }
  if (length > kLongest) {
    ++cut_lines_;
    std::size_t end = kLongest;
    const auto continues = [&] { return (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80; };
    for (int step = 0; step < 3 && continues(); ++step) --end;
    line.resize(end);
  }
  return ended || length > 0;
}

}  // namespace nunchi::cli
