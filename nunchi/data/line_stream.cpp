#include "nunchi/data/line_stream.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

// The last boundary between two characters at or before `max_bytes`. More than three continuation
// bytes in a row are not UTF-8 and are cut anywhere.
std::size_t end_of_whole_characters(std::string_view text, std::size_t max_bytes) {
  std::size_t end = max_bytes;
  for (int i = 0; i < 4 && end > 0; ++i, --end) {
    if ((static_cast<unsigned char>(text[end]) & 0xC0u) != 0x80u) return end;
  }
  return max_bytes;
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
    more.remove_prefix(end);  // keep the "\n": the beginning of the line is in the buffer
  }
  buffer_ += more;
  // Enough to detect that the line is too long after a byte order mark (three bytes) and a "\r"
  // have been removed.
  const std::size_t max_bytes = max_line_bytes_ + 5;
  if (buffer_.size() > max_bytes && !has_line()) {
    buffer_.resize(max_bytes);
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
  const bool has_end = end != std::string::npos;
  std::string_view found =
      std::string_view(buffer_).substr(begin_, (has_end ? end : buffer_.size()) - begin_);
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (is_first_line_ && found.starts_with(kByteOrderMark))
    found.remove_prefix(kByteOrderMark.size());
  is_first_line_ = false;
  if (found.ends_with('\r')) found.remove_suffix(1);
  if (found.size() > max_line_bytes_) {
    found = found.substr(0, end_of_whole_characters(found, max_line_bytes_));
    ++cut_lines_;
  }
  line = found;
  begin_ = searched_ = has_end ? end + 1 : buffer_.size();
  return true;
}

bool LineStream::is_ready() {
  while (!has_line()) {
    if (ended_) return true;
    searched_ = buffer_.size();
    pollfd input{.fd = descriptor_, .events = POLLIN, .revents = 0};
    if (::poll(&input, 1, 0) <= 0) return false;
    fill();
  }
  return true;
}

}  // namespace nunchi
