// What may not come next, as far as it is not about n-grams: each rule bans one token at most.
#pragma once

#include "nunchi/kernels/cuda/common/device.h"
#include "nunchi/kernels/search.h"

namespace nunchi::kernels {

struct BanRules {
  std::int64_t rows, stride;
  std::int32_t begin_token, end_token;
  std::int64_t generated, min_length, max_repeats;
  StepNow now;
  SearchRows hypotheses;
  const std::int32_t* prefix_length;

  // Tokens of the row's hypothesis; the row is one of those that there are now.
  __device__ std::int64_t length(std::int64_t row) const {
    return prefix_length[hypotheses.unit[row]] + now.tokens(generated);
  }
};

template <class T>
BanRules rules_of(const BanTokens<T>& p) {
  return {.rows = p.rows,
          .stride = p.stride,
          .begin_token = p.begin_token,
          .end_token = p.end_token,
          .generated = p.generated,
          .min_length = p.min_length,
          .max_repeats = p.max_repeats,
          .now = p.now,
          .hypotheses = p.hypotheses,
          .prefix_length = p.prefix_length};
}

struct Ban {
  bool wanted = false;
  std::int32_t token = 0;
};

// Rules have a lane each: what this lane's says.
__device__ inline Ban ban_of_lane(const BanRules& p, std::int64_t row, std::int64_t length) {
  constexpr int kCycles = static_cast<int>(BanTokens<float>::kLongestCycle);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (lane < kCycles) {
    const std::int64_t period = lane + 1;
    const std::int32_t* tokens = p.hypotheses.tokens + row * p.stride;
    if (p.max_repeats == 0 || !is_cycle(tokens, length, period, p.max_repeats)) return {};
    const std::int32_t token = tokens[length - period];
    return {token != p.end_token, token};
  }
  if (lane == kCycles) return {p.begin_token >= 0, p.begin_token};
  if (lane == kCycles + 1) return {length < p.min_length, p.end_token};
  return {};
}

}  // namespace nunchi::kernels
