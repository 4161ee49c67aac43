#include "nunchi/base/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <utility>

#include "nunchi/base/error.h"
#include "nunchi/base/interrupted.h"

namespace nunchi {
namespace {

constexpr int kTickMilliseconds = 100;
// The first byte that the child sends.
constexpr char kResult = 'r', kError = 'e';

[[noreturn]] void fail(const char* what, int reason) {
  throw Error(std::string("cannot start a child process: ") + what + ": " + std::strerror(reason));
}

struct Pipe {
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe", errno);
  }
  ~Pipe() {
    close_read();
    close_write();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void close_read() { close(ends[0]); }
  void close_write() { close(ends[1]); }
  static void close(int& end) {
    if (end >= 0) ::close(std::exchange(end, -1));
  }

  std::array<int, 2> ends{-1, -1};
};

void write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // the parent has ended
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

[[noreturn]] void run_child(const std::function<std::string()>& work, const Pipe& result,
                            const Pipe& log, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it ended before the line above
  ::dup2(log.ends[1], STDERR_FILENO);
  std::string answer;
  try {
    answer = kResult + work();
  } catch (const std::bad_alloc&) {
    answer = kError + std::string("out of memory.");
  } catch (const std::exception& error) {
    answer = kError + std::string(error.what());
  }
  write_all(result.ends[1], answer);
  ::_exit(0);
}

// Ends the child, if it has not ended yet, and waits for its end.
class Child {
 public:
  explicit Child(pid_t id) : id_(id) {}
  ~Child() {
    if (id_ <= 0) return;
    ::kill(id_, SIGKILL);
    wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The signal that ended it; 0 if it ended by itself, or if another part of the program has
  // already waited for it.
  int wait() {
    int status = 0;
    pid_t waited = 0;
    do {
      waited = ::waitpid(id_, &status, 0);
    } while (waited < 0 && errno == EINTR);
    id_ = 0;
    return waited > 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

 private:
  pid_t id_;
};

// Appends what can be read now; closes the pipe at its end.
void receive(Pipe& pipe, std::string& into) {
  std::array<char, 1 << 16> buffer;
  const ssize_t count = ::read(pipe.ends[0], buffer.data(), buffer.size());
  if (count > 0) {
    into.append(buffer.data(), static_cast<std::size_t>(count));
  } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
    pipe.close_read();
  }
}

// Passes on the complete lines of `text` and removes them.
void take_lines(std::string& text, const std::function<void(std::string_view)>& take) {
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    if (take) take(std::string_view(text).substr(begin, end - begin));
  }
  text.erase(0, begin);
}

}  // namespace

std::string run_in_child(const std::function<std::string()>& work, const ChildOptions& options) {
  check_stop(options.stop);
  Pipe result, log;
  const pid_t parent = ::getpid();
  // The child inherits the blocked signals: a handler of this process must not run in it.
  sigset_t stop_signals, previous;
  sigemptyset(&stop_signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&stop_signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &stop_signals, &previous);
  const pid_t id = ::fork();
  if (id == 0) run_child(work, result, log, parent);
  const int failure = errno;
  ::pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  if (id < 0) fail("fork", failure);
  Child child(id);
  result.close_write();
  log.close_write();

  std::string answer, log_text;
  while (result.ends[0] >= 0 || log.ends[0] >= 0) {
    std::array<pollfd, 2> ready{{{result.ends[0], POLLIN, 0}, {log.ends[0], POLLIN, 0}}};
    ::poll(ready.data(), ready.size(), kTickMilliseconds);  // ignores closed ends, which are -1
    check_stop(options.stop);
    if (ready[0].revents != 0) receive(result, answer);
    if (ready[1].revents != 0) receive(log, log_text);
    take_lines(log_text, options.log);
    if (options.tick) options.tick();
  }
  const int signal = child.wait();
  if (answer.starts_with(kResult)) return answer.substr(1);
  if (answer.starts_with(kError)) throw Error(answer.substr(1));
  if (signal == SIGKILL) throw Error("the child process was killed: is there too little memory?");
  throw Error("the child process ended unexpectedly" +
              (signal != 0 ? std::string(": ") + ::strsignal(signal) : std::string()) + ".");
}

}  // namespace nunchi
