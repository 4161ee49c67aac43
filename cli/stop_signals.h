// Handles Ctrl-C and SIGTERM.
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <string>

namespace nunchi::cli {

// While an object exists, the first signal sets requested(); a second one ends the process as
// usual. At most one object may exist at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static const std::atomic<bool>& requested();

 private:
  static constexpr std::array<int, 2> kSignals{SIGINT, SIGTERM};
  std::array<struct sigaction, 2> previous_actions_{};
};

// While an object exists, a signal removes a file, prints one sentence and ends the process with
// exit code 128 + signal. For jobs that can be restarted but not resumed. At most one object may
// exist at a time.
class RemovedWhenStopped {
 public:
  // An empty `file` leaves the signals unchanged. `name` is the name of the file in the message.
  RemovedWhenStopped(const std::filesystem::path& file, const std::string& name);
  ~RemovedWhenStopped();
  RemovedWhenStopped(const RemovedWhenStopped&) = delete;
  RemovedWhenStopped& operator=(const RemovedWhenStopped&) = delete;

 private:
  static constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> previous_actions_{};
};

}  // namespace nunchi::cli
