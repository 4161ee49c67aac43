#include "nunchi/training/progress.h"

#include <gtest/gtest.h>

#include <thread>

namespace nunchi::testing {
namespace {

TEST(TotalSteps, TheFirstLimitDecides) {
  EXPECT_EQ(total_steps({.max_minutes = 5}, 100), 0);
  EXPECT_EQ(total_steps({.max_steps = 70}, 100), 70);
  EXPECT_EQ(total_steps({.max_epochs = 2}, 100), 200);
  EXPECT_EQ(total_steps({.max_steps = 70, .max_epochs = 2}, 100), 70);
  EXPECT_EQ(total_steps({.max_steps = 700, .max_epochs = 2}, 100), 200);
}

TEST(TotalSteps, AStepMaySpanTwoEpochs) {
  EXPECT_EQ(total_steps({.accumulate = 8, .max_epochs = 2}, 100), 25);
  EXPECT_EQ(total_steps({.accumulate = 7, .max_epochs = 1}, 100), 15);
}

TEST(RunClock, AddsTheTimeOfEarlierProcesses) {
  RunClock clock(10, 1000);
  clock.start();
  EXPECT_GE(clock.elapsed(), 1000);
  EXPECT_LT(clock.elapsed(), 1100);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  // This process took two steps in at least 20 ms, so the last two will take as long.
  const double left = clock.seconds_left(12, 14, 0);
  EXPECT_GE(left, 0.02);
  EXPECT_LT(left, 100);
  EXPECT_EQ(clock.seconds_left(14, 14, 0), 0);
}

TEST(RunClock, TheTimeLeftIsUnknownWithoutALimit) {
  RunClock clock;
  clock.start();
  EXPECT_LT(clock.seconds_left(1, 0, 0), 0);
  EXPECT_GT(clock.seconds_left(1, 0, 10), 500);
  EXPECT_LE(clock.seconds_left(1, 0, 10), 600);
  EXPECT_EQ(RunClock(5, 700).seconds_left(6, 0, 10), 0);
}

TEST(RunClock, ExcludedTimeDoesNotCountInTheSpeed) {
  RunClock clock;
  clock.start();
  clock.add_tokens(1000);
  const auto start = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const double with_pause = clock.tokens_per_second();
  EXPECT_LE(with_pause, 1000 / 0.05);
  clock.exclude_since(start);
  EXPECT_GT(clock.tokens_per_second(), with_pause);
  clock.start_window();
  EXPECT_EQ(clock.tokens_per_second(), 0);
}

}  // namespace
}  // namespace nunchi::testing
