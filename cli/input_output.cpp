#include "cli/input_output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "nunchi/base/error.h"
#include "nunchi/data/line_stream.h"

namespace nunchi::cli {

std::string input_path(const std::string& path) { return path == "-" ? "/dev/stdin" : path; }

std::unique_ptr<LineSource> open_input(const std::string& path) {
  if (path == "-") return std::make_unique<LineStream>(STDIN_FILENO);
  return std::make_unique<LineReader>(path);
}

Output::Output(const std::string& path) {
  if (path == "-") return;
  remove_abandoned_files(std::filesystem::path(path).parent_path());
  file_.emplace(path);
  removed_.emplace(file_->temporary(), path);
}

void Output::add(std::string_view text) {
  buffer_ += text;
  constexpr std::size_t kFlushBytes = 1 << 16;
  if (buffer_.size() >= kFlushBytes) flush();
}

void Output::flush() {
  if (file_) {
    file_->write(std::as_bytes(std::span(buffer_)));
  } else {
    write_to_stdout();
  }
  buffer_.clear();
}

void Output::finish() {
  flush();
  if (file_) file_->commit();
}

void Output::write_to_stdout() {
  std::string_view rest = buffer_;
  while (open_ && !rest.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      pollfd writable{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
      ::poll(&writable, 1, -1);
      continue;
    }
    if (count < 0 && errno == EPIPE) open_ = false;
    if (count < 0 && open_) {
      throw Error(std::string("cannot write to standard output: ") + std::strerror(errno) + ".");
    }
    if (count > 0) rest.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace nunchi::cli
