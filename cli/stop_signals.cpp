#include "cli/stop_signals.h"

#include <unistd.h>

namespace nunchi::cli {
namespace {

// Globals: a signal handler has no other way to reach data.
std::atomic<bool> stop_requested = false;
std::string file_to_remove, message_to_print;

void remove_file_and_exit(int signal) {
  // Only async-signal-safe functions may be called here.
  ::unlink(file_to_remove.c_str());
  [[maybe_unused]] const ssize_t written =
      ::write(STDERR_FILENO, message_to_print.data(), message_to_print.size());
  ::_exit(128 + signal);
}

}  // namespace

const std::atomic<bool>& StopSignals::requested() { return stop_requested; }

StopSignals::StopSignals() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_requested = true; };
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &previous_actions_[i]);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &previous_actions_[i], nullptr);
  }
}

RemovedWhenStopped::RemovedWhenStopped(const std::filesystem::path& file, const std::string& name) {
  file_to_remove = file.string();
  message_to_print = "nunchi: stopped; " + name + " is unchanged.\n";
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &previous_actions_[i]);
    // Processes in the background or under nohup ignore these signals; keep it that way.
    if (file.empty() || previous_actions_[i].sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = remove_file_and_exit;
    ::sigaction(kSignals[i], &action, nullptr);
  }
}

RemovedWhenStopped::~RemovedWhenStopped() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &previous_actions_[i], nullptr);
  }
}

}  // namespace nunchi::cli
