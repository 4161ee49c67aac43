#include "nunchi/base/child_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <iostream>
#include <thread>
#include <vector>

#include "nunchi/base/interrupted.h"
#include "tests/errors.h"

namespace nunchi::testing {
namespace {

using Clock = std::chrono::steady_clock;

std::string sleep_forever() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

bool has_children() { return ::waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD; }

TEST(ChildProcess, ReturnsTheResultAndTheLinesOfTheLog) {
  const std::string large(3 << 20, 'x');
  std::vector<std::string> lines;
  int value = 1;
  const auto work = [&] {
    value = 2;  // in the child only
    std::cerr << "one\ntwo" << std::endl;
    std::thread([&] { std::cerr << "three" << std::endl; }).join();
    return large;
  };
  EXPECT_EQ(run_in_child(work, {.log = [&](auto line) { lines.emplace_back(line); }}), large);
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_EQ(value, 1);
  EXPECT_EQ(run_in_child([] { return std::string(); }, {}), "");
  EXPECT_FALSE(has_children());
}

TEST(ChildProcess, PassesOnErrors) {
  EXPECT_EQ(error_of([] { run_in_child([]() -> std::string { throw Error("too small."); }, {}); }),
            "too small.");
  EXPECT_TRUE(says(error_of([] { run_in_child([]() -> std::string { std::abort(); }, {}); }),
                   "ended unexpectedly: Aborted"));
  EXPECT_TRUE(says(error_of([] {
                     run_in_child(
                         []() -> std::string {
                           ::raise(SIGKILL);
                           return {};
                         },
                         {});
                   }),
                   "was killed"));
  EXPECT_FALSE(has_children());
}

TEST(ChildProcess, IsEndedAtOnceByARequestToStop) {
  std::atomic<bool> stop = false;
  int ticks = 0;
  const auto start = Clock::now();
  EXPECT_THROW(run_in_child(sleep_forever, {.stop = &stop, .tick = [&] { stop = ++ticks == 3; }}),
               Interrupted);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
  EXPECT_FALSE(has_children());
}

TEST(ChildProcess, IsEndedWhenACallbackThrows) {
  EXPECT_EQ(error_of([] { run_in_child(sleep_forever, {.tick = [] { throw Error("enough"); }}); }),
            "enough");
  EXPECT_FALSE(has_children());
}

TEST(ChildProcess, IgnoresTheSignalsThatStopAProgram) {
  const auto work = [] {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::raise(signal);
    return std::string("alive");
  };
  EXPECT_EQ(run_in_child(work, {}), "alive");
}

}  // namespace
}  // namespace nunchi::testing
