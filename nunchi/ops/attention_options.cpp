#include "nunchi/ops/attention_options.h"

#include <cmath>

#include "nunchi/ops/check.h"

namespace nunchi {

AttentionOptions completed_options(AttentionOptions options, std::int64_t width) {
  if (options.kv_heads == 0) options.kv_heads = options.heads;
  check(options.heads > 0 && options.kv_heads > 0 && options.heads % options.kv_heads == 0 &&
            width % options.heads == 0,
        "attention",
        "a width of " + std::to_string(width) + " cannot be split into " +
            std::to_string(options.heads) + " heads with " + std::to_string(options.kv_heads) +
            " key/value heads");
  const ScoreBias& bias = options.bias;
  if (bias.kind == ScoreBias::Kind::slopes) {
    check_shape("attention", "slopes", bias.slopes, {options.heads});
  } else if (bias.kind == ScoreBias::Kind::buckets) {
    const std::int64_t buckets = bias.table.value().size(0),
                       exact = buckets / (bias.bidirectional ? 4 : 2);
    check_shape("attention", "the bias table", bias.table.value(), {buckets, options.heads});
    const bool fits =
        bias.clipped ? buckets == kernels::clipped_buckets(bias.max_distance, bias.bidirectional)
                     : exact >= 1 && bias.max_distance > exact;
    check(fits, "attention",
          std::to_string(buckets) + " buckets do not fit distances up to " +
              std::to_string(bias.max_distance));
  }
  if (options.scale == 0) {
    const std::int64_t head_width = width / options.heads;
    options.scale = 1 / std::sqrt(static_cast<double>(head_width));
  }
  return options;
}

}  // namespace nunchi
