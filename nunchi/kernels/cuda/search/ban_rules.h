// Rules that ban next tokens, except for n-grams. Each rule bans at most one token.
#pragma once

#include "nunchi/kernels/cuda/common/device.h"
#include "nunchi/kernels/search.h"

namespace nunchi::kernels {

struct BanRules {
  std::int64_t rows, stride;
  std::int32_t suppressed_token, end_token;
  std::int64_t suppressed_count;
  const std::int32_t* suppressed;
  StepCounts counts;
  SearchRows hypotheses;
  const UnitOptions* options;
};

template <class T>
BanRules rules_of(const BanTokens<T>& p) {
  return {.rows = p.rows,
          .stride = p.stride,
          .suppressed_token = p.suppressed_token,
          .end_token = p.end_token,
          .suppressed_count = p.suppressed_count,
          .suppressed = p.suppressed,
          .counts = p.counts,
          .hypotheses = p.hypotheses,
          .options = p.options};
}

struct Ban {
  bool wanted = false;
  std::int32_t token = 0;
};

constexpr int kCycles = static_cast<int>(UnitOptions::kLongestCycle);
// Lanes that are left for the list of suppressed tokens.
constexpr int kSuppressedLanes = kWarp - kCycles - 2;

// The token that this lane's rule bans in an active row; there is one lane per rule.
__device__ inline Ban ban_of_lane(const BanRules& p, std::int64_t row) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t length = p.hypotheses.length[row];
  const UnitOptions& unit = p.options[p.hypotheses.unit[row]];
  if (lane < kCycles) {
    const std::int64_t period = lane + 1;
    const std::int32_t* tokens = p.hypotheses.tokens + row * p.stride;
    if (unit.max_repeats == 0 || !is_cycle(tokens, length, period, unit.max_repeats)) return {};
    const std::int32_t token = tokens[length - period];
    return {token != p.end_token, token};
  }
  if (lane == kCycles) return {p.suppressed_token >= 0, p.suppressed_token};
  if (lane == kCycles + 1) return {length < unit.min_length, p.end_token};
  if (const int i = lane - kCycles - 2; i < p.suppressed_count) return {true, p.suppressed[i]};
  return {};
}

}  // namespace nunchi::kernels
