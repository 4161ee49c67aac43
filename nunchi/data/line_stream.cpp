#include "nunchi/data/line_stream.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

// The last position up to `most` that is between two characters. More than three continuation bytes
// in a row are not UTF-8 and are cut anywhere.
std::size_t end_of_whole_characters(std::string_view text, std::size_t most) {
  std::size_t end = most;
  for (int i = 0; i < 4 && end > 0; ++i, --end) {
    if ((static_cast<unsigned char>(text[end]) & 0xC0u) != 0x80u) return end;
  }
  return most;
}

}  // namespace

bool LineStream::has_line() const { return buffer_.find('\n', searched_) != std::string::npos; }

bool LineStream::fill() {
  if (ended_) return false;
  if (begin_ > 0) {
    buffer_.erase(0, begin_);
    searched_ -= begin_;
    begin_ = 0;
  }
  char bytes[1 << 16];
  ssize_t count = -1;
  do {
    count = ::read(descriptor_, bytes, sizeof bytes);
    if (count < 0 && errno == EAGAIN) {
      // The descriptor is non-blocking: wait for input and try again.
      pollfd input{.fd = descriptor_, .events = POLLIN, .revents = 0};
      ::poll(&input, 1, -1);
      errno = EINTR;
    }
  } while (count < 0 && errno == EINTR);
  if (count < 0)
    throw Error(std::string("the input cannot be read: ") + std::strerror(errno) + ".");
  if (count == 0) {
    ended_ = true;
    return false;
  }
  std::string_view more(bytes, static_cast<std::size_t>(count));
  if (skipping_) {
    const std::size_t end = more.find('\n');
    if (end == more.npos) return true;
    skipping_ = false;
    more.remove_prefix(end);  // keep the end of the line: the line itself is in the buffer
  }
  buffer_ += more;
  // Enough to detect that the line is too long after a byte order mark (three bytes) and a "\r"
  // have been removed.
  const std::size_t most = longest_ + 5;
  if (buffer_.size() > most && !has_line()) {
    buffer_.resize(most);
    skipping_ = true;
  }
  return true;
}

bool LineStream::next(std::string& line) {
  line.clear();
  while (!has_line()) {
    searched_ = buffer_.size();
    if (!fill()) break;
  }
  if (begin_ == buffer_.size()) return false;
  const std::size_t end = buffer_.find('\n', searched_);
  const bool whole = end != std::string::npos;
  std::string_view found =
      std::string_view(buffer_).substr(begin_, (whole ? end : buffer_.size()) - begin_);
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (first_ && found.starts_with(kMark)) found.remove_prefix(kMark.size());
  first_ = false;
  if (found.ends_with('\r')) found.remove_suffix(1);
  if (found.size() > longest_) {
    found = found.substr(0, end_of_whole_characters(found, longest_));
    ++cut_lines_;
  }
  line = found;
  begin_ = searched_ = whole ? end + 1 : buffer_.size();
  return true;
}

bool LineStream::is_waiting() {
  while (!has_line()) {
    if (ended_) return true;
    searched_ = buffer_.size();
    pollfd poll_for{.fd = descriptor_, .events = POLLIN, .revents = 0};
    if (::poll(&poll_for, 1, 0) <= 0) return false;
    fill();
  }
  return true;
}

}  // namespace nunchi
