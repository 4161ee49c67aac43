// The device buffers of a search: the hypotheses of active units, the finished hypotheses and the
// options of units.
#pragma once

#include <span>
#include <vector>

#include "nunchi/kernels/required_phrases.h"
#include "nunchi/tensor/tensor.h"

namespace nunchi {

// The hypotheses of one step.
struct ActiveHypotheses {
  Tensor tokens, token_scores, score, unit, length;  // shapes as in kernels::SearchRows
  Tensor counts;                                     // i32 [2] active units, steps so far

  ActiveHypotheses(ContextBase& context, std::int64_t rows, std::int64_t stride);

  kernels::SearchRows rows() const {
    return {.tokens = tokens.data<std::int32_t>(),
            .token_scores = token_scores.data<float>(),
            .score = score.data<double>(),
            .unit = unit.data<std::int32_t>(),
            .length = length.data<std::int32_t>()};
  }
};

// The finished hypotheses of all units. One buffer holds them, so that one copy brings them to the
// host.
class FinishedHypotheses {
 public:
  struct Size {
    std::int64_t units = 0, beam = 1, stride = 0;
  };
  FinishedHypotheses(ContextBase& context, const Size& size);

  kernels::FinishedRows rows() const { return rows_at(memory_.data<std::int8_t>()); }
  // Removes the finished hypotheses of `units` units and marks these units as not done.
  void clear(std::int64_t first_unit, std::int64_t units) const;
  // For each unit, non-zero if it is done.
  std::vector<std::int32_t> download_done_flags() const;
  // Copies everything into `buffer` on the host; the result points into it.
  kernels::FinishedRows download(std::vector<std::int8_t>& buffer) const;

 private:
  // Numbers of elements in the buffer.
  std::int64_t hypothesis_capacity() const { return size_.units * size_.beam; }
  std::int64_t token_capacity() const { return hypothesis_capacity() * size_.stride; }
  std::int64_t bytes() const {
    return 16 * hypothesis_capacity() + 8 * token_capacity() + 8 * size_.units;
  }
  kernels::FinishedRows rows_at(std::int8_t* memory) const;

  Size size_;
  Tensor memory_;
};

// The options of all units, on the host and on the device.
class UnitOptionsBuffer {
 public:
  UnitOptionsBuffer(ContextBase& context, std::int64_t units);

  kernels::UnitOptions& operator[](std::int64_t unit) {
    return host_[static_cast<std::size_t>(unit)];
  }
  const kernels::UnitOptions& operator[](std::int64_t unit) const {
    return host_[static_cast<std::size_t>(unit)];
  }
  void upload(std::int64_t first_unit, std::int64_t units) const;
  const kernels::UnitOptions* data() const {
    return reinterpret_cast<const kernels::UnitOptions*>(device_.data<std::int8_t>());
  }

 private:
  std::vector<kernels::UnitOptions> host_;
  Tensor device_;  // bytes
};

// The phrases of all units, on the host and on the device. Without memory until a unit has phrases.
class UnitPhrasesBuffer {
 public:
  UnitPhrasesBuffer(ContextBase& context, std::int64_t units) : context_(context), units_(units) {}

  bool has_phrases(std::int64_t unit) const {
    return !host_.empty() && host_[static_cast<std::size_t>(unit)].count > 0;
  }
  void set(std::int64_t unit, const kernels::UnitPhrases& phrases);
  void upload(std::int64_t first_unit, std::int64_t units) const;
  const kernels::UnitPhrases* data() const {
    return reinterpret_cast<const kernels::UnitPhrases*>(device_.data<std::int8_t>());
  }

 private:
  ContextBase& context_;
  std::int64_t units_;
  std::vector<kernels::UnitPhrases> host_;
  Tensor device_;  // bytes
};

}  // namespace nunchi
