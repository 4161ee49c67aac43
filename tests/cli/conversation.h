// Runs the program with pipes for input and output: write a line, wait for the answer.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/files.h"
#include "tests/paths.h"

namespace nunchi::testing {

class Conversation {
 public:
  struct End {
    int code = -1;  // the exit code; -1: ended by a signal, or still running
    std::string error;
    long peak_kib = 0;
  };

  enum class Input : std::uint8_t { blocking, non_blocking };

  explicit Conversation(std::vector<std::string> arguments, Input input = Input::blocking) {
    // A closed pipe is reported by write() instead of a signal.
    ::signal(SIGPIPE, SIG_IGN);
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) {
      throw std::runtime_error("cannot make pipes");
    }
    if (input == Input::non_blocking) ::fcntl(in[0], F_SETFL, O_NONBLOCK);
    arguments.insert(arguments.begin(), NUNCHI_PROGRAM);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (folder_ / "error").c_str(),
                                     O_WRONLY | O_CREAT, 0600);
    // A shell that starts the tests in the background makes them ignore SIGINT; the program must
    // not inherit that.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t defaults;
    sigemptyset(&defaults);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&defaults, signal);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    const int failed =
        ::posix_spawn(&child_, NUNCHI_PROGRAM, &actions, &attributes, argv.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    in_ = in[1];
    out_ = out[0];
    if (failed != 0) throw std::runtime_error("cannot start the program");
  }
  ~Conversation() {
    finish_writing();
    stop_reading();
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
  }
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  // Returns false when the program has closed its input.
  bool write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::write(in_, text.data(), text.size());
      if (count < 0) return false;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  void finish_writing() { close_end(in_); }
  void stop_reading() { close_end(out_); }

  void send(int signal) const { ::kill(child_, signal); }

  // The next line without its line break; "(no line)" after a timeout or at the end.
  std::string read_line() {
    for (;;) {
      const std::size_t end = unread_.find('\n');
      if (end != std::string::npos) {
        std::string line = unread_.substr(0, end);
        unread_.erase(0, end + 1);
        return line;
      }
      pollfd readable{.fd = out_, .events = POLLIN, .revents = 0};
      char bytes[4096];
      if (::poll(&readable, 1, kTimeoutMs) <= 0) return "(no line)";
      const ssize_t count = ::read(out_, bytes, sizeof bytes);
      if (count <= 0) return "(no line)";
      unread_.append(bytes, static_cast<std::size_t>(count));
    }
  }

  // Waits for the program to exit.
  End end() {
    int status = 0;
    rusage usage{};
    const auto start = std::chrono::steady_clock::now();
    while (::wait4(child_, &status, WNOHANG, &usage) == 0) {
      if (std::chrono::steady_clock::now() - start > std::chrono::milliseconds(kTimeoutMs)) {
        return {.error = "it did not end"};
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    child_ = -1;
    return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            .error = content(folder_ / "error"),
            .peak_kib = usage.ru_maxrss};
  }

 private:
  static constexpr int kTimeoutMs = 60000;

  static void close_end(int& descriptor) {
    if (descriptor >= 0) ::close(descriptor);
    descriptor = -1;
  }

  TemporaryFolder folder_;
  pid_t child_ = -1;
  int in_ = -1, out_ = -1;
  std::string unread_;
};

}  // namespace nunchi::testing
