// A communicator for workers that are threads of one process and communicate through memory.
#pragma once

#include <barrier>
#include <functional>
#include <thread>
#include <vector>

#include "nunchi/ops/tensors.h"
#include "nunchi/training/communicator.h"

namespace nunchi::testing {

// The memory that the threads share.
class ThreadGroup {
 public:
  explicit ThreadGroup(int size) : size_(size), tensors_(size), numbers_(size), barrier_(size) {}

  int size() const { return size_; }
  void wait() { barrier_.arrive_and_wait(); }

  // Calls work(communicator) on `size` threads, one for each rank.
  static void run(int size, const std::function<void(Communicator&)>& work);

 private:
  friend class ThreadCommunicator;
  int size_;
  std::vector<std::vector<double>> tensors_;  // one per rank
  std::vector<std::int64_t> numbers_;         // one per rank
  std::string text_;
  std::barrier<> barrier_;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(ThreadGroup& group, int rank) : group_(group), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return group_.size(); }

  void all_reduce(const Tensor& values) override {
    own_tensor() = to_host_f64(values);
    group_.wait();
    std::vector<double> sum = tree_sum(0, size(), values.dtype());
    group_.wait();
    copy_to(sum, values);
  }

  std::int64_t sum(std::int64_t value) override {
    group_.numbers_[static_cast<std::size_t>(rank_)] = value;
    group_.wait();
    std::int64_t sum = 0;
    for (const std::int64_t number : group_.numbers_) sum += number;
    group_.wait();
    return sum;
  }

  void broadcast(const Tensor& values) override {
    if (is_leader()) own_tensor() = to_host_f64(values);
    group_.wait();
    if (!is_leader()) copy_to(group_.tensors_[0], values);
    group_.wait();
  }

  void broadcast(std::string& text) override {
    if (is_leader()) group_.text_ = text;
    group_.wait();
    text = group_.text_;
    group_.wait();
  }

  void barrier() override { group_.wait(); }

 private:
  std::vector<double>& own_tensor() { return group_.tensors_[static_cast<std::size_t>(rank_)]; }

  // Every addition is rounded to the tensors' type. Adding two f32 numbers in f64 and rounding to
  // f32 gives the same result as adding in f32, since 53 >= 2 · 24 + 2 bits.
  std::vector<double> tree_sum(int first, int end, DType dtype) const {
    if (end - first == 1) return group_.tensors_[static_cast<std::size_t>(first)];
    const int middle = first + (end - first) / 2;
    std::vector<double> sum = tree_sum(first, middle, dtype);
    const std::vector<double> upper = tree_sum(middle, end, dtype);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += upper[i];
      if (dtype == DType::f32) sum[i] = static_cast<float>(sum[i]);
    }
    return sum;
  }

  static void copy_to(const std::vector<double>& values, const Tensor& to) {
    if (to.dtype() == DType::f64) return copy_from_host<double>(values, to);
    copy_from_host<float>(std::vector<float>(values.begin(), values.end()), to);
  }

  ThreadGroup& group_;
  int rank_;
};

inline void ThreadGroup::run(int size, const std::function<void(Communicator&)>& work) {
  ThreadGroup group(size);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&group, &work, rank] {
      ThreadCommunicator communicator(group, rank);
      work(communicator);
    });
  }
}

}  // namespace nunchi::testing
