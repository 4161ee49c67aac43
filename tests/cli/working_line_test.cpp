// Long work on a terminal: what it shows, and how it is stopped.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "tests/cli/program.h"
#include "tests/inference/small_translation.h"

namespace nunchi::testing {
namespace {

using Clock = std::chrono::steady_clock;

// Runs the program with a terminal as standard error.
class ProgramOnTerminal {
 public:
  explicit ProgramOnTerminal(std::vector<std::string> arguments) {
    int program_side = -1;
    if (::openpty(&terminal_, &program_side, nullptr, nullptr, nullptr) != 0) return;
    arguments.insert(arguments.begin(), NUNCHI_PROGRAM);
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    process_ = ::fork();
    if (process_ == 0) {
      const int nothing = ::open("/dev/null", O_RDWR);
      ::dup2(nothing, STDIN_FILENO);
      ::dup2(nothing, STDOUT_FILENO);
      ::dup2(program_side, STDERR_FILENO);
      ::close(terminal_);
      ::execv(NUNCHI_PROGRAM, pointers.data());
      ::_exit(127);
    }
    ::close(program_side);
  }
  ~ProgramOnTerminal() {
    if (process_ > 0 && !ended_) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
    }
    ::close(terminal_);
  }

  // Reads until the terminal has shown `text`.
  bool shows(const std::string& text, std::chrono::seconds at_most) {
    const auto end = Clock::now() + at_most;
    while (shown_.find(text) == shown_.npos && Clock::now() < end) {
      pollfd readable{.fd = terminal_, .events = POLLIN, .revents = 0};
      char buffer[256];
      if (::poll(&readable, 1, 100) > 0) {
        const ssize_t count = ::read(terminal_, buffer, sizeof buffer);
        if (count <= 0) break;
        shown_.append(buffer, static_cast<std::size_t>(count));
      }
    }
    return shown_.find(text) != shown_.npos;
  }
  // Sends a signal; returns the exit code, or -1 if the program goes on.
  int stop(int signal, std::chrono::seconds at_most) {
    ::kill(process_, signal);
    for (const auto end = Clock::now() + at_most; Clock::now() < end; ::usleep(10'000)) {
      int status = 0;
      if (::waitpid(process_, &status, WNOHANG) != process_) continue;
      ended_ = true;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return -1;
  }
  const std::string& shown() const { return shown_; }

 private:
  int terminal_ = -1;
  pid_t process_ = -1;
  bool ended_ = false;
  std::string shown_;
};

TEST(WorkingLine, LongWorkShowsItsTimeAndStopsWithoutAnOutput) {
  const TemporaryFolder folder;
  SmallTranslation().save(folder.path());
  write_text(folder / "input", "a dog\n");
  ProgramOnTerminal program({"translate", folder.path().string(), "--threads", "1", "-i",
                             (folder / "input").string(), "-o", (folder / "output").string(),
                             "--min-length", "100000", "--max-length", "100000"});
  EXPECT_TRUE(program.shows("0 lines done, token ", std::chrono::seconds(30))) << program.shown();
  EXPECT_TRUE(program.shows(" of at most 100,000, 0:0", std::chrono::seconds(5)))
      << program.shown();
  EXPECT_EQ(program.stop(SIGTERM, std::chrono::seconds(5)), 128 + SIGTERM);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().filename().string().find("output"), std::string::npos) << entry.path();
  }
}

TEST(WorkingLine, ALongSourceShowsTheLayerThatReadsIt) {
  const TemporaryFolder folder;
  SmallTranslation().save(folder.path());
  std::string line;
  for (int i = 0; i < 60'000; ++i) line += "a dog ";
  write_text(folder / "input", line + "\n");
  ProgramOnTerminal program({"translate", folder.path().string(), "--threads", "1", "-i",
                             (folder / "input").string(), "--max-source-length", "200000"});
  EXPECT_TRUE(program.shows("0 lines done, encoding: layer 1 of ", std::chrono::seconds(30)))
      << program.shown();
  // Attention reports its part.
  const auto shows_part = [&] {
    for (int percent = 1; percent < 100; ++percent) {
      if (program.shows("(" + std::to_string(percent) + "%)", std::chrono::seconds(0))) return true;
    }
    return false;
  };
  for (int i = 0; i < 30 && !shows_part(); ++i) {
    program.shows("nothing like this", std::chrono::seconds(1));
  }
  EXPECT_TRUE(shows_part()) << program.shown();
  EXPECT_EQ(program.stop(SIGTERM, std::chrono::seconds(5)), 128 + SIGTERM);
}

TEST(WorkingLine, ShortWorkShowsNothing) {
  const TemporaryFolder folder;
  SmallTranslation().save(folder.path());
  write_text(folder / "input", "a dog\n");
  ProgramOnTerminal program({"translate", folder.path().string(), "--threads", "1", "-i",
                             (folder / "input").string(), "--max-length", "5"});
  EXPECT_FALSE(program.shows("done", std::chrono::seconds(5)));
  EXPECT_EQ(program.shown(), "");
}

}  // namespace
}  // namespace nunchi::testing
