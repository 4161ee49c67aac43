// Threads that process jobs in parallel; the results are taken in the order of submission.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace nunchi {

// One thread submits jobs and takes results. The destructor waits for the jobs that have started
// and drops the others.
template <class Job>
class OrderedWorkers {
 public:
  // `work` is called by several threads at the same time.
  OrderedWorkers(int threads, std::function<void(Job&)> work) : work_(std::move(work)) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this](std::stop_token stop) { run(stop); });
    }
  }

  void submit(Job job) {
    const std::lock_guard lock(mutex_);
    slots_.push_back(std::make_unique<Slot>(std::move(job)));
    changed_.notify_all();
  }

  // The number of jobs that were submitted and not yet taken.
  std::size_t pending() const {
    const std::lock_guard lock(mutex_);
    return slots_.size();
  }

  // Waits for the oldest job; rethrows the exception of its work. At least one job must be pending.
  Job take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return slots_.front()->done; });
    const std::unique_ptr<Slot> slot = std::move(slots_.front());
    slots_.pop_front();
    --started_;
    if (slot->failure) std::rethrow_exception(slot->failure);
    return std::move(slot->job);
  }

 private:
  struct Slot {
    explicit Slot(Job given) : job(std::move(given)) {}
    Job job;
    bool done = false;
    std::exception_ptr failure;
  };

  void run(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return started_ < slots_.size(); })) {
      if (stop.stop_requested()) return;
      Slot& slot = *slots_[started_++];
      lock.unlock();
      std::exception_ptr failure;
      try {
        work_(slot.job);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      slot.failure = failure;
      slot.done = true;
      changed_.notify_all();
    }
  }

  std::function<void(Job&)> work_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::unique_ptr<Slot>> slots_;  // in order of submission
  std::size_t started_ = 0;                  // the first `started_` slots have been started
  // The last member, so that they stop before the others are destroyed.
  std::vector<std::jthread> threads_;
};

}  // namespace nunchi
