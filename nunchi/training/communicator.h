// Communication between workers that train one model together. Each worker has its own context, a
// copy of the weights and an equal part of every step's micro-batches.
//
// Every function except rank(), size() and is_leader() is collective: all workers must call the
// same functions in the same order, and each call returns when its result is available. If a worker
// fails, the others wait forever; the program that started the workers must end them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "nunchi/tensor/tensor.h"

namespace nunchi {

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;  // from 0 to size() - 1
  virtual int size() const = 0;
  // Rank 0 holds the run's folder, writes checkpoints and logs, validates and talks to the user.
  bool is_leader() const { return rank() == 0; }

  // Replaces the tensor of every worker by the sum over all workers. The tensor must be contiguous,
  // f32 or f64, and of the same size on all workers. The additions always form the same binary tree
  // over the ranks: the sum of the lower half of the ranks plus the sum of the upper half (the
  // lower half is the smaller one if the number is odd). So all workers get the same bits, in every
  // run.
  virtual void all_reduce(const Tensor& values) = 0;
  // Returns the sum over all workers.
  virtual std::int64_t sum(std::int64_t value) = 0;

  // Copy the value of rank 0 to every worker. A tensor must be contiguous and of the same size on
  // all workers; a text may have any length.
  virtual void broadcast(const Tensor& values) = 0;
  virtual void broadcast(std::string& text) = 0;

  // Returns when all workers have called it.
  virtual void barrier() = 0;

  // Whether `value` is true on at least one worker.
  bool any(bool value) { return sum(value ? 1 : 0) > 0; }
  // Returns the leader's value on every worker.
  template <class T>
  requires std::is_trivially_copyable_v<T> T from_leader(T value) {
    if (size() == 1) return value;
    std::string bytes(reinterpret_cast<const char*>(&value), sizeof value);
    broadcast(bytes);
    std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof value);
    return value;
  }
};

// The communicator of a run with one worker.
class SingleProcess final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(const Tensor&) override {}
  std::int64_t sum(std::int64_t value) override { return value; }
  void broadcast(const Tensor&) override {}
  void broadcast(std::string&) override {}
  void barrier() override {}
};

}  // namespace nunchi
