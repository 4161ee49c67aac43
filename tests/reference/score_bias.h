// The score biases that attention is tested with.
#pragma once

#include "nunchi/kernels/attention.h"

namespace nunchi::testing {

// The bidirectional kinds also have buckets for keys after the query.
enum class Bias { none, slopes, buckets, buckets_bidirectional, clipped, clipped_bidirectional };
inline constexpr Bias kBiases[] = {Bias::slopes, Bias::buckets, Bias::buckets_bidirectional,
                                   Bias::clipped, Bias::clipped_bidirectional};

constexpr bool is_clipped(Bias bias) {
  return bias == Bias::clipped || bias == Bias::clipped_bidirectional;
}
constexpr bool is_bidirectional(Bias bias) {
  return bias == Bias::buckets_bidirectional || bias == Bias::clipped_bidirectional;
}
constexpr int distance_of(Bias bias) { return is_clipped(bias) ? 5 : 40; }
constexpr int buckets_of(Bias bias) {
  if (bias == Bias::none || bias == Bias::slopes) return 0;
  return is_clipped(bias) ? kernels::clipped_buckets(distance_of(bias), is_bidirectional(bias))
                          : 12;
}

template <class T>
kernels::ScoreBias<T> score_bias(Bias bias, const Accumulator<T>* slopes, const T* table) {
  using Kind = typename kernels::ScoreBias<T>::Kind;
  if (bias == Bias::none) return {};
  if (bias == Bias::slopes) return {.kind = Kind::slopes, .slopes = slopes};
  return {.kind = Kind::buckets,
          .table = table,
          .buckets = buckets_of(bias),
          .max_distance = distance_of(bias),
          .bidirectional = is_bidirectional(bias),
          .clipped = is_clipped(bias)};
}

}  // namespace nunchi::testing
