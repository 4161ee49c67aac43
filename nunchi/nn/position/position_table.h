// Numbers that follow from a position alone, in a table that grows to the longest sentence seen.
#pragma once

#include <functional>

#include "nunchi/nn/parameters.h"

namespace nunchi::nn {

class PositionTable {
 public:
  using Value = std::function<double(std::int64_t position, std::int64_t column)>;
  // As layers compute, or exact: the type that theirs is summed in.
  enum class Kept : std::uint8_t { computed, exact };

  // Keeps `parameters` to know where and in which type the model computes.
  PositionTable(const Parameters& parameters, std::int64_t width, Kept kept, Value value)
      : parameters_(parameters), width_(width), kept_(kept), value_(std::move(value)) {}

  // [P, width] with at least `length` positions. P doubles, so that it seldom grows; then the
  // numbers stand elsewhere.
  const Tensor& reaching(std::int64_t length) const;

 private:
  const Parameters& parameters_;
  std::int64_t width_;
  Kept kept_;
  Value value_;
  mutable Tensor table_;
};

}  // namespace nunchi::nn
