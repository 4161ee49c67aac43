#include "nunchi/device/cpu/busy_cores.h"

#include <fcntl.h>
#include <omp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>

namespace nunchi {
namespace {

using std::chrono::nanoseconds;

// Waits are measured over windows of at least kWindow. A longer one than kMaxWindow says little:
// the thread did something else in between.
constexpr std::chrono::milliseconds kWindow(100), kMaxWindow(1000);
// The cores are busy if the thread waited for a core for this part of a window, and quiet again if
// that has not happened for kQuietTime. Threads of this process alone, such as the one that
// prepares batches, stay below.
constexpr double kBusyShare = 0.25;
constexpr auto kQuietTime = std::chrono::milliseconds(500);

// The second number of a thread's schedstat file: the time it waited for a core.
class ScheduleStatistics {
 public:
  ScheduleStatistics() : file_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
  ~ScheduleStatistics() {
    if (file_ >= 0) ::close(file_);
  }
  ScheduleStatistics(const ScheduleStatistics&) = delete;
  ScheduleStatistics& operator=(const ScheduleStatistics&) = delete;

  std::optional<nanoseconds> waited() const {
    std::array<char, 128> text{};
    const ssize_t size = file_ < 0 ? -1 : ::pread(file_, text.data(), text.size(), 0);
    if (size <= 0) return std::nullopt;
    const char* const end = text.data() + size;
    nanoseconds::rep running = 0, waited = 0;
    const auto first = std::from_chars(text.data(), end, running);
    if (first.ec != std::errc() || first.ptr == end) return std::nullopt;
    const auto second = std::from_chars(first.ptr + 1, end, waited);
    if (second.ec != std::errc()) return std::nullopt;
    return nanoseconds(waited);
  }

 private:
  int file_;
};

// For the thread that calls this function.
BusyCores::WaitClock system_wait_clock() {
  const auto statistics = std::make_shared<const ScheduleStatistics>();
  return [statistics] { return statistics->waited(); };
}

}  // namespace

// An OpenMP team with more threads than there are cores, all asleep.
class BusyCores::SleepingTeam {
 public:
  SleepingTeam() : thread_([this] { sleep(); }) {}
  ~SleepingTeam() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    end_.notify_all();
    thread_.join();  // with it, libgomp ends the other threads of the team
  }
  SleepingTeam(const SleepingTeam&) = delete;
  SleepingTeam& operator=(const SleepingTeam&) = delete;

 private:
  void sleep() {
#pragma omp parallel num_threads(omp_get_num_procs() + 1)
    {
      std::unique_lock lock(mutex_);
      end_.wait(lock, [this] { return ended_; });
    }
  }

  std::mutex mutex_;
  std::condition_variable end_;
  bool ended_ = false;
  std::thread thread_;
};

std::unique_ptr<BusyCores::SleepingTeam> BusyCores::make_team() {
  // libgomp ends the process if the address space has no room for the stack of a thread.
  ::rlimit addresses{};
  if (::getrlimit(RLIMIT_AS, &addresses) != 0 || addresses.rlim_cur != RLIM_INFINITY)
    return nullptr;
  try {
    return std::make_unique<SleepingTeam>();
  } catch (const std::system_error&) {
    return nullptr;  // the system refused a thread; without it, threads only wait less well
  }
}

BusyCores::BusyCores() = default;
BusyCores::~BusyCores() = default;

void BusyCores::set_wait_clock(WaitClock clock) {
  wait_clock_ = std::move(clock);
  replaced_ = true;
  thread_ = {};  // the next check starts a window
}

void BusyCores::check() {
  polls_left_ = kPollsPerCheck;
  const Clock::time_point now = Clock::now();
  const auto window = now - window_begin_;
  if (thread_ == std::this_thread::get_id() && window < kWindow) return;
  if (thread_ != std::this_thread::get_id()) {
    thread_ = std::this_thread::get_id();
    if (!replaced_) wait_clock_ = system_wait_clock();
    return start_window();
  }
  const std::optional<nanoseconds> waited = wait_clock_();
  if (!waited || window > kMaxWindow) return start_window();
  if (std::chrono::duration<double>(*waited - waited_before_) > kBusyShare * window) {
    last_busy_ = now;
    if (team_ == nullptr) team_ = make_team();
  } else if (now - last_busy_ > kQuietTime) {
    team_.reset();
  }
  start_window();
}

void BusyCores::start_window() {
  window_begin_ = Clock::now();
  waited_before_ = wait_clock_().value_or(nanoseconds(0));
}

}  // namespace nunchi
