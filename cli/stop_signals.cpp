#include "cli/stop_signals.h"

namespace nunchi::cli {
namespace {

// A handler of signals can reach nothing but a global.
std::atomic<bool> stop_requested = false;

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

}  // namespace nunchi::cli
