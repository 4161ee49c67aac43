// The number of threads of a kernel follows from the size of its work.
#include <omp.h>

#include <filesystem>
#include <thread>

#include "nunchi/kernels/norm.h"
#include "nunchi/kernels/product.h"
#include "nunchi/kernels/run.h"
#include "tests/support.h"

namespace nunchi::testing {
namespace {

std::ptrdiff_t threads_of_this_process() {
  return std::ranges::distance(std::filesystem::directory_iterator("/proc/self/task"),
                               std::filesystem::directory_iterator());
}

// The same once the threads of an earlier test have ended.
std::ptrdiff_t settled_threads() {
  std::ptrdiff_t threads = threads_of_this_process();
  while (true) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::ptrdiff_t now = threads_of_this_process();
    if (now == threads) return threads;
    threads = now;
  }
}

// The threads that `work` started. It runs on a new thread, for which OpenMP has no threads yet.
template <class F>
std::ptrdiff_t started_threads(const CpuOptions& options, F&& work) {
  std::ptrdiff_t started = 0;
  std::jthread([&] {
    CpuContext ctx(options);
    const std::ptrdiff_t before = settled_threads();
    work(ctx);
    started = threads_of_this_process() - before;
  }).join();
  return started;
}

void multiply(CpuContext& ctx, std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto a = random_values<float>(m * k, 1), b = random_values<float>(k * n, 2);
  std::vector<float> c(static_cast<std::size_t>(m * n));
  kernels::run(ctx, kernels::Product<float>{
                        .m = m, .n = n, .k = k, .a = a.data(), .b = b.data(), .c = c.data()});
}

void normalise(CpuContext& ctx, std::int32_t rows, std::int64_t width) {
  const auto x = random_values<float>(rows * width, 1), gamma = random_values<float>(width, 2);
  std::vector<float> out(x.size()), mean(static_cast<std::size_t>(rows)), rstd(mean.size());
  kernels::run(ctx, kernels::ResidualNorm<float>{.rows = {.capacity = rows, .count = &rows},
                                                 .width = width,
                                                 .residual = x.data(),
                                                 .gamma = gamma.data(),
                                                 .out = out.data(),
                                                 .mean = mean.data(),
                                                 .rstd = rstd.data()});
}

TEST(Parallel, SmallWorkRunsOnTheCallingThread) {
  const CpuOptions two{.threads = 2};
  EXPECT_EQ(started_threads(two, [](CpuContext& ctx) { multiply(ctx, 8, 128, 128); }), 0);
  EXPECT_EQ(started_threads(two, [](CpuContext& ctx) { normalise(ctx, 32, 128); }), 0);
}

TEST(Parallel, LargeWorkIsSplit) {
  const CpuOptions two{.threads = 2};
  EXPECT_EQ(started_threads(two, [](CpuContext& ctx) { multiply(ctx, 256, 512, 512); }), 1);
  EXPECT_EQ(started_threads(two, [](CpuContext& ctx) { normalise(ctx, 1024, 128); }), 1);
}

// Makes the context find its cores busy, and waits for the threads that it then keeps.
void make_busy(CpuContext& ctx) {
  const std::ptrdiff_t before = settled_threads();
  auto waited = std::make_shared<std::chrono::nanoseconds>();
  ctx.busy_cores().set_wait_clock([waited] { return *waited += std::chrono::seconds(1); });
  while (!ctx.busy_cores().detected()) ctx.busy_cores().poll();
  ctx.busy_cores().set_wait_clock([] { return std::nullopt; });  // from now on nothing changes
  while (threads_of_this_process() < before + omp_get_num_procs() + 1) std::this_thread::yield();
}

// Threads wait for each other for as long as other processes run, so only long work is split.
TEST(Parallel, OnBusyCoresMostWorkRunsOnTheCallingThread) {
  std::jthread([] {
    CpuContext ctx({.threads = 2});
    make_busy(ctx);
    const std::ptrdiff_t before = threads_of_this_process();
    normalise(ctx, 1024, 128);
    EXPECT_EQ(threads_of_this_process(), before);
    if (kernels::rows_are_independent()) multiply(ctx, 256, 128, 128);
    EXPECT_EQ(threads_of_this_process(), before);
  }).join();
}

TEST(Parallel, TestsCanSplitSmallWork) {
  const CpuOptions two{.threads = 2, .split_small_work = true};
  EXPECT_EQ(started_threads(two, [](CpuContext& ctx) { normalise(ctx, 2, 8); }), 1);
}

// libgomp ends the threads that a smaller team does not need: teams must not shrink.
TEST(Parallel, WorkForFewerThreadsKeepsTheOthers) {
  const CpuOptions four{.threads = 4};
  EXPECT_EQ(started_threads(four,
                            [](CpuContext& ctx) {
                              normalise(ctx, 1024, 128);
                              normalise(ctx, 100, 128);  // two ranges
                            }),
            3);
}

}  // namespace
}  // namespace nunchi::testing
