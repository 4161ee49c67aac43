// What was found in the stretches of rows of logits, and how it becomes what the rows have.
#pragma once

#include "nunchi/kernels/cuda/bans.h"
#include "nunchi/kernels/cuda/logits.h"

namespace nunchi::kernels::cuda {

struct Stretches {
  int each = 1;           // stretches of a row
  int kept = 1;           // keys of a stretch
  Key* keys = nullptr;    // [R, each, kept] descending, 0 where there are fewer
  float* tops = nullptr;  // [R, each] the highest logits
  float* sums = nullptr;  // [R, each] Σ exp(x - shift_of(top))
};

struct Merge {
  Stretches from;
  int rows, count;       // count <= kept
  const double* banned;  // [R] as in TopTokens, or null
  // Bans of tokens that may still be among the keys: a stretch has kept so many more, or all.
  bool bans;
  BanRules rules;
  float* log_probs;   // [R, count]
  std::int32_t* ids;  // [R, count]
};

void merge_stretches(CudaContext& ctx, const Merge& merge);

}  // namespace nunchi::kernels::cuda
