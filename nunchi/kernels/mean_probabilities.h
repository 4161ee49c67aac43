// The mean of the probabilities that several models give to the next token.
#pragma once

#include <cstdint>

#include "nunchi/kernels/run.h"

namespace nunchi::kernels {

// out = log(mean over m of softmax(logits[m])), row by row. Computed from the logarithms of the
// probabilities, so that the order of tokens that all models find very unlikely is kept. A NaN
// among a row's logits makes the whole row of `out` NaN.
template <class T>
struct MeanProbabilities {
  static constexpr int kMaxMembers = 16;

  std::int64_t rows = 0;
  std::int64_t vocabulary = 0;        // V
  int members = 0;                    // from 1 to kMaxMembers
  const T* logits[kMaxMembers] = {};  // [R, V] of each member
  T* out = nullptr;                   // [R, V]; may be the same as one of the logits

  const char* name() const { return "mean_probabilities"; }
  Work work() const {
    return {.bytes = static_cast<double>(rows * vocabulary * (2 * members + 1)) * sizeof(T)};
  }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const MeanProbabilities<T>& p);

}  // namespace nunchi::kernels
