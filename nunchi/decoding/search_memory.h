// What a search keeps in device memory: the hypotheses that go on and those that have ended.
#pragma once

#include <vector>

#include "nunchi/decoding/search_units.h"
#include "nunchi/kernels/search.h"

namespace nunchi {

// The hypotheses of one step, in device memory.
struct RowMemory {
  Tensor tokens, token_scores, score, unit;
  Tensor counts;  // i32 [2] active units, tokens beyond the prefix

  RowMemory(ContextBase& context, std::int64_t rows, std::int64_t stride);

  kernels::SearchRows rows() const {
    return {.tokens = tokens.data<std::int32_t>(),
            .token_scores = token_scores.data<float>(),
            .score = score.data<double>(),
            .unit = unit.data<std::int32_t>()};
  }
};

// What was found, in one piece of memory, so that it comes to the host at once.
class FinishedMemory {
 public:
  FinishedMemory(ContextBase& context, const Units& units);

  kernels::FinishedRows rows() const { return rows_at(memory_.data<std::int8_t>()); }
  // Nothing is finished.
  void clear() const;
  // On the host, in `room`.
  kernels::FinishedRows download(std::vector<std::int8_t>& room) const;

 private:
  std::int64_t bytes() const {
    return 8 * hypotheses_ + 8 * tokens_ + 8 * hypotheses_ + 4 * units_;
  }
  kernels::FinishedRows rows_at(std::int8_t* memory) const;

  std::int64_t hypotheses_, tokens_, units_;
  Tensor memory_;
};

}  // namespace nunchi
