#include "nunchi/nn/position/relative.h"

#include "nunchi/base/error.h"

namespace nunchi::nn {

std::int64_t RelativeOptions::bucket_count() const {
  return kind == RelativeKind::clipped ? kernels::clipped_buckets(max_distance, bidirectional)
                                       : buckets;
}

void RelativeOptions::check() const {
  if (kind == RelativeKind::clipped) return;
  // Half of a direction's buckets hold one distance each; the others must reach further.
  const int single = buckets / (bidirectional ? 4 : 2);
  if (single >= 1 && max_distance > single) return;
  throw Error(std::to_string(buckets) + " buckets of relative positions" +
              (bidirectional ? " in two directions" : "") + " cannot cover a distance of " +
              std::to_string(max_distance) + ". There must be at least " +
              (bidirectional ? "4" : "2") + " buckets, and the distance must be more than " +
              std::to_string(single) + ".");
}

Relative::Relative(Parameters& parameters, const std::string& name, const PositionOptions& options)
    : options_(options.relative) {
  options_.check();
  table_ = parameters.add(name + ".weight", {options_.bucket_count(), options.heads},
                          table_init(options));
}

ScoreBias Relative::score_bias(ContextBase&) const {
  return {.kind = ScoreBias::Kind::buckets,
          .table = table_,
          .max_distance = options_.max_distance,
          .bidirectional = options_.bidirectional,
          .clipped = options_.kind == RelativeKind::clipped};
}

}  // namespace nunchi::nn
