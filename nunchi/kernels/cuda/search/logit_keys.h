// Logits as sortable keys, and the logarithm of a sum of their exponentials.
#pragma once

#include "nunchi/kernels/cuda/search/row_registers.h"

namespace nunchi::kernels {

// log(e^a + e^b); at least one of a and b must be above -inf. NaN propagates.
__device__ inline double log_add(double a, double b) {
  const double maximum = a < b ? b : a;
  return maximum + log(exp(a - maximum) + exp(b - maximum));
}

// log Σ exp of a row whose highest logit is `max_logit` and whose Σ exp(x - max_logit) is `sum`,
// including the banned tokens. NaN if all logits are -inf.
__device__ inline double log_sum(float max_logit, double sum, const double* banned) {
  const double allowed =
      max_logit > -INFINITY ? static_cast<double>(max_logit) + log(sum) : static_cast<double>(NAN);
  return banned != nullptr ? log_add(allowed, *banned) : allowed;
}

// The value to subtract from logits before exp: the highest, or 0 if all are -inf, to avoid NaN.
__device__ inline float shift_of(float max_logit) {
  return max_logit > -INFINITY ? max_logit : 0.0f;
}

// Integers that compare as the floats do; NaN is below all, and both zeros are equal.
__device__ inline std::uint32_t order_of(float x) {
  const std::uint32_t bits = __float_as_uint(__fadd_rn(x, 0.0f));
  if (x != x) return 0;
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}
__device__ inline float value_of(std::uint32_t order) {
  if (order == 0) return NAN;
  return __uint_as_float(order >> 31 != 0 ? order & 0x7FFFFFFFu : ~order);
}

// A token and its logit as one integer: larger for a higher logit and, of equal ones, for a lower
// id. Never 0, which means no token.
using Key = unsigned long long;

__device__ inline Key key_of(float logit, std::int64_t id) {
  return Key{order_of(logit)} << 32 | static_cast<std::uint32_t>(~static_cast<std::uint32_t>(id));
}
// The same for a logit that is not NaN.
__device__ inline Key number_key(float logit, std::int32_t id) {
  const int bits = __float_as_int(__fadd_rn(logit, 0.0f));
  const auto order =
      static_cast<std::uint32_t>(bits ^ (bits >> 31 | static_cast<int>(0x80000000u)));
  return Key{order} << 32 | static_cast<std::uint32_t>(~id);
}
__device__ inline float logit_of(Key key) {
  return value_of(static_cast<std::uint32_t>(key >> 32));
}
__device__ inline std::int32_t id_of(Key key) {
  return static_cast<std::int32_t>(~static_cast<std::uint32_t>(key));
}

__device__ inline Key warp_max(Key key) {
  const auto high = static_cast<std::uint32_t>(key >> 32), low = static_cast<std::uint32_t>(key);
  const std::uint32_t max_high = __reduce_max_sync(kAllLanes, high);
  const std::uint32_t rest = __reduce_max_sync(kAllLanes, high == max_high ? low : 0u);
  return Key{max_high} << 32 | rest;
}

// The maximum over four neighbouring lanes.
__device__ inline Key quad_max(Key key) {
#pragma unroll
  for (int lanes = 1; lanes <= 2; lanes *= 2) {
    const auto high = __shfl_xor_sync(kAllLanes, static_cast<std::uint32_t>(key >> 32), lanes);
    const auto low = __shfl_xor_sync(kAllLanes, static_cast<std::uint32_t>(key), lanes);
    key = max(key, Key{high} << 32 | low);
  }
  return key;
}

}  // namespace nunchi::kernels
