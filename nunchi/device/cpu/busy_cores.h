// Lets waiting threads sleep while other processes use the same cores.
//
// Kernels are parallel regions of OpenMP, some tens of microseconds long. Between them libgomp's
// threads spin for milliseconds before they sleep. On quiet cores that is the fastest way to wait.
// On busy cores a spinning thread takes the core from the thread that it waits for, and small
// models become many times slower.
//
// libgomp reads how long to spin (GOMP_SPINCOUNT) when it is loaded, too early for a library to
// change it. But its threads spin only briefly while it manages more threads than there are cores.
// So when the thread that starts the kernels often has to wait for a core, BusyCores keeps a team
// of that many threads, all asleep, until the cores are quiet again. The number of threads that
// compute does not change, and neither do results.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

namespace nunchi {

// Used by one thread at a time.
class BusyCores {
 public:
  // How long the calling thread, since it started, has been ready to run but had no core; none if
  // that is unknown.
  using WaitClock = std::function<std::optional<std::chrono::nanoseconds>()>;

  BusyCores();
  ~BusyCores();
  BusyCores(const BusyCores&) = delete;
  BusyCores& operator=(const BusyCores&) = delete;

  // Called before parallel work by the thread that starts it. Almost always it only counts.
  // Inlined, because kernels of all instruction sets call it (kernels/cpu/isa_version.h).
  [[gnu::always_inline]] void poll() {
    if (--polls_left_ <= 0) check();
  }
  // Whether waiting threads sleep. Always false where the system does not say how long a thread
  // waited for a core.
  bool detected() const { return team_ != nullptr; }
  // For tests: replaces the system's clock.
  void set_wait_clock(WaitClock clock);

 private:
  using Clock = std::chrono::steady_clock;
  class SleepingTeam;
  void check();
  void start_window();
  static std::unique_ptr<SleepingTeam> make_team();  // null if the system refuses it

  // A few microseconds of work each, so that a window is not missed by much.
  static constexpr int kPollsPerCheck = 32;
  int polls_left_ = kPollsPerCheck;
  std::thread::id thread_;  // whose waits are measured
  WaitClock wait_clock_;
  bool replaced_ = false;  // whether set_wait_clock() was called
  Clock::time_point window_begin_, last_busy_;
  std::chrono::nanoseconds waited_before_{};  // at the beginning of the window
  std::unique_ptr<SleepingTeam> team_;        // while the cores are busy
};

}  // namespace nunchi
