#include "nunchi/data/ordered_workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace nunchi {
namespace {

struct Job {
  int number = 0;
  int result = 0;
};

TEST(OrderedWorkers, ReturnJobsInOrder) {
  for (const int threads : {1, 4}) {
    OrderedWorkers<Job> workers(threads, [](Job& job) {
      // Later jobs often finish earlier.
      std::this_thread::sleep_for(std::chrono::microseconds(job.number * 37 % 200));
      job.result = job.number * job.number;
    });
    int taken = 0;
    for (int i = 0; i < 200; ++i) {
      workers.submit({i});
      if (workers.pending() < 10) continue;
      const Job job = workers.take();
      EXPECT_EQ(job.number, taken);
      EXPECT_EQ(job.result, taken * taken);
      ++taken;
    }
    while (workers.pending() > 0) EXPECT_EQ(workers.take().number, taken++);
    EXPECT_EQ(taken, 200);
  }
}

TEST(OrderedWorkers, TakeRethrowsTheExceptionOfAJob) {
  OrderedWorkers<Job> workers(3, [](Job& job) {
    if (job.number == 2) throw std::runtime_error("two");
  });
  for (int i = 0; i < 5; ++i) workers.submit({i});
  EXPECT_EQ(workers.take().number, 0);
  EXPECT_EQ(workers.take().number, 1);
  EXPECT_THROW(workers.take(), std::runtime_error);
  EXPECT_EQ(workers.take().number, 3);
}

TEST(OrderedWorkers, NoJobRunsAfterDestruction) {
  for (int i = 0; i < 20; ++i) {
    std::atomic<int> started = 0, finished = 0;
    {
      OrderedWorkers<Job> workers(3, [&](Job&) {
        ++started;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        ++finished;
      });
      for (int number = 0; number < i; ++number) workers.submit({number});
    }
    const int started_at_end = started;
    EXPECT_EQ(finished, started_at_end);
    EXPECT_LE(started_at_end, i);
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    EXPECT_EQ(started, started_at_end);
  }
}

}  // namespace
}  // namespace nunchi
