// A table of values that depend only on the position. It grows to the longest sentence seen.
#pragma once

#include <functional>
#include <mutex>

#include "nunchi/nn/parameters.h"

namespace nunchi::nn {

class PositionTable {
 public:
  using Value = std::function<double(std::int64_t position, std::int64_t column)>;
  // Stored in the type that layers compute in, or in the type of its accumulators.
  enum class Precision : std::uint8_t { compute, accumulator };

  // Refers to `parameters` for the context and the type that the model computes in.
  PositionTable(const Parameters& parameters, std::int64_t width, Precision precision, Value value)
      : parameters_(parameters), width_(width), precision_(precision), value_(std::move(value)) {}

  // [P, width] with P >= length. A table that is too short is computed anew on `context`, in new
  // memory; P doubles, so that this is rare. Any number of threads may call this concurrently, each
  // with its own context.
  Tensor for_length(ContextBase& context, std::int64_t length) const;

 private:
  const Parameters& parameters_;
  std::int64_t width_;
  Precision precision_;
  Value value_;
  mutable std::mutex mutex_;  // guards table_
  mutable Tensor table_;
};

}  // namespace nunchi::nn
