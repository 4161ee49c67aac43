// Checks the options of attention operations and translates them for kernels.
#pragma once

#include "nunchi/ops/attention.h"

namespace nunchi {

// The options with their defaults filled in. Throws Error when they do not fit a model width of
// `width`.
AttentionOptions completed_options(AttentionOptions options, std::int64_t width);

template <class T>
kernels::ScoreBias<T> kernel_bias(const ScoreBias& bias) {
  using Kind = typename kernels::ScoreBias<T>::Kind;
  switch (bias.kind) {
    case ScoreBias::Kind::none:
      return {};
    case ScoreBias::Kind::slopes:
      return {.kind = Kind::slopes, .slopes = bias.slopes.data<Accumulator<T>>()};
    case ScoreBias::Kind::buckets:
      return {.kind = Kind::buckets,
              .table = bias.table.value().data<T>(),
              .buckets = static_cast<int>(bias.table.value().size(0)),
              .max_distance = bias.max_distance,
              .bidirectional = bias.bidirectional,
              .clipped = bias.clipped};
  }
  return {};
}

}  // namespace nunchi
