#include "cli/stop_signals.h"

#include <unistd.h>

namespace nunchi::cli {
namespace {

// A handler of signals can reach nothing but a global.
std::atomic<bool> stop_requested = false;
std::string file_to_remove, words_to_say;

void remove_and_end(int signal) {
  // Only what a handler may call.
  ::unlink(file_to_remove.c_str());
  [[maybe_unused]] const ssize_t said =
      ::write(STDERR_FILENO, words_to_say.data(), words_to_say.size());
  ::_exit(128 + signal);
}

}  // namespace

const std::atomic<bool>& StopSignals::requested() { return stop_requested; }

StopSignals::StopSignals() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_requested = true; };
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &before_[i]);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &before_[i], nullptr);
  }
}

RemovedWhenStopped::RemovedWhenStopped(const std::filesystem::path& file, const std::string& name) {
  file_to_remove = file.string();
  words_to_say = "nunchi: stopped; " + name + " is as it was.\n";
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    // What was started in the background or with nohup is not to hear of them.
    if (file.empty() || before_[i].sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = remove_and_end;
    ::sigaction(kSignals[i], &action, nullptr);
  }
}

RemovedWhenStopped::~RemovedWhenStopped() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &before_[i], nullptr);
  }
}

}  // namespace nunchi::cli
