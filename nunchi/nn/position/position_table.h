// Numbers that depend on a position alone, in a table that grows to the longest sentence seen.
#pragma once

#include <functional>
#include <mutex>

#include "nunchi/nn/parameters.h"

namespace nunchi::nn {

class PositionTable {
 public:
  using Value = std::function<double(std::int64_t position, std::int64_t column)>;
  // As layers compute, or exact: the type that theirs is summed in.
  enum class Kept : std::uint8_t { computed, exact };

  // Refers to `parameters` for the memory and the type that the model computes in.
  PositionTable(const Parameters& parameters, std::int64_t width, Kept kept, Value value)
      : parameters_(parameters), width_(width), kept_(kept), value_(std::move(value)) {}

  // [P, width] with at least `length` positions, computed on `context` if there are fewer. P
  // doubles, so that the table seldom grows; when it does, its memory changes. Any number of
  // threads may call this at once, each with a context of its own.
  Tensor reaching(ContextBase& context, std::int64_t length) const;

 private:
  const Parameters& parameters_;
  std::int64_t width_;
  Kept kept_;
  Value value_;
  mutable std::mutex mutex_;  // guards table_
  mutable Tensor table_;
};

}  // namespace nunchi::nn
