// Ctrl-C and SIGTERM as a request to stop.
#pragma once

#include <array>
#include <atomic>
#include <csignal>

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

}  // namespace nunchi::cli
