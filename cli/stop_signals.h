// Ctrl-C and SIGTERM as a request to stop.
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <string>

namespace nunchi::cli {

// While it lives, the first of these signals sets requested(); a second one ends the process as
// usual. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static const std::atomic<bool>& requested();

 private:
  static constexpr std::array<int, 2> kSignals{SIGINT, SIGTERM};
  std::array<struct sigaction, 2> before_{};
};

// While it lives, such a signal removes a file and ends the process with 128 and the signal's
// number, after one sentence. For work that can be begun again but not be continued. One at a time.
class RemovedWhenStopped {
 public:
  // `file` may be empty: then signals do what they did. `name` is what the user knows it by.
  RemovedWhenStopped(const std::filesystem::path& file, const std::string& name);
  ~RemovedWhenStopped();
  RemovedWhenStopped(const RemovedWhenStopped&) = delete;
  RemovedWhenStopped& operator=(const RemovedWhenStopped&) = delete;

 private:
  static constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> before_{};
};

}  // namespace nunchi::cli
