#include "nunchi/device/cpu/busy_cores.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <filesystem>

#include "nunchi/device/context.h"

namespace nunchi {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// A clock of a thread that has to wait for a core during `share` of the time.
struct PretendedWaits {
  double share = 0;
  Clock::time_point last = Clock::now();
  std::chrono::duration<double> waited{};

  std::optional<std::chrono::nanoseconds> operator()() {
    const Clock::time_point now = Clock::now();
    waited += share * (now - last);
    last = now;
    return std::chrono::duration_cast<std::chrono::nanoseconds>(waited);
  }
};

// Polls, as kernels do, until the cores are found busy or quiet; false after ten seconds.
bool polled_until(BusyCores& cores, bool busy) {
  const Clock::time_point begin = Clock::now();
  while (cores.detected() != busy) {
    if (Clock::now() - begin > 10s) return false;
    cores.poll();
    std::this_thread::sleep_for(20us);
  }
  return true;
}

bool stays(BusyCores& cores, bool busy, Clock::duration time) {
  for (const Clock::time_point begin = Clock::now(); Clock::now() - begin < time;) {
    cores.poll();
    if (cores.detected() != busy) return false;
    std::this_thread::sleep_for(20us);
  }
  return true;
}

std::ptrdiff_t threads_of_this_process() {
  return std::ranges::distance(std::filesystem::directory_iterator("/proc/self/task"),
                               std::filesystem::directory_iterator());
}

TEST(BusyCores, AreDetectedByTheWaitsOfAThreadAndForgottenWhenTheyEnd) {
  PretendedWaits waits{.share = 0.02};
  BusyCores cores;
  cores.set_wait_clock(std::ref(waits));
  EXPECT_TRUE(stays(cores, false, 300ms)) << "short waits are usual";
  waits.share = 0.5;
  EXPECT_TRUE(polled_until(cores, true));
  waits.share = 0.01;
  EXPECT_TRUE(stays(cores, true, 250ms)) << "a short pause of the others is no end";
  EXPECT_TRUE(polled_until(cores, false));
}

TEST(BusyCores, AnUnknownWaitIsNoWait) {
  BusyCores cores;
  cores.set_wait_clock([] { return std::nullopt; });
  EXPECT_TRUE(stays(cores, false, 300ms));
}

// While libgomp has more threads than cores, its threads sleep instead of spinning.
TEST(BusyCores, KeepMoreThreadsThanCoresWhileDetected) {
  PretendedWaits waits{.share = 0.5};
  const std::ptrdiff_t before = threads_of_this_process();
  {
    BusyCores cores;
    cores.set_wait_clock(std::ref(waits));
    ASSERT_TRUE(polled_until(cores, true));
    const Clock::time_point begin = Clock::now();
    while (threads_of_this_process() <= before + omp_get_num_procs() && Clock::now() - begin < 5s) {
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_GT(threads_of_this_process(), before + omp_get_num_procs());
  }
  const Clock::time_point begin = Clock::now();
  while (threads_of_this_process() > before && Clock::now() - begin < 5s) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_LE(threads_of_this_process(), before) << "the threads end with the object";
}

TEST(BusyCores, AreFoundByRealLoad) {
  BusyCores cores;
  std::atomic<bool> end = false;
  std::vector<std::jthread> load;
  for (int i = 0; i < 3 * usable_cores(); ++i) {
    load.emplace_back([&] {
      while (!end) {
      }
    });
  }
  const Clock::time_point begin = Clock::now();
  while (!cores.detected() && Clock::now() - begin < 10s) cores.poll();
  const bool known = std::filesystem::exists("/proc/thread-self/schedstat");
  EXPECT_EQ(cores.detected(), known);
  end = true;
}

}  // namespace
}  // namespace nunchi
