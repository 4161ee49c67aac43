// A pipe with both ends in this process.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <stdexcept>
#include <string_view>

namespace nunchi::testing {

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_, O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
  }
  ~Pipe() {
    close_write_end();
    ::close(ends_[0]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int out() const { return ends_[0]; }
  // `bytes` must fit into the pipe's buffer, because nothing reads meanwhile.
  void write(std::string_view bytes) {
    if (::write(ends_[1], bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error("cannot write into a pipe");
    }
  }
  void close_write_end() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2];
};

}  // namespace nunchi::testing
