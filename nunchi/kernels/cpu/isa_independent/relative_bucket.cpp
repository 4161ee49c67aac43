#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <tuple>

#include "nunchi/kernels/attention.h"
#include "nunchi/kernels/cpu/bucket_starts.h"

namespace nunchi::kernels {

int relative_bucket(std::int64_t relative, int buckets, int max_distance, bool bidirectional) {
  int first = 0;
  if (bidirectional) {
    buckets /= 2;
    if (relative > 0) first = buckets;
    relative = relative < 0 ? -relative : relative;
  } else {
    relative = relative < 0 ? -relative : 0;
  }
  const int exact = buckets / 2;
  if (relative < exact) return first + static_cast<int>(relative);
  const double log_bucket = std::log(static_cast<double>(relative) / exact) /
                            std::log(static_cast<double>(max_distance) / exact) * (buckets - exact);
  return first + std::min(exact + static_cast<int>(log_bucket), buckets - 1);
}

std::vector<std::int32_t> bucket_starts(int buckets, int max_distance, bool bidirectional) {
  const int per_direction = bidirectional ? buckets / 2 : buckets;
  std::vector<std::int32_t> starts = {0};
  // Distances from max_distance on share the last bucket.
  for (int distance = 1; distance <= std::max(max_distance, buckets); ++distance) {
    const int bucket = relative_bucket(-distance, buckets, max_distance, bidirectional);
    while (static_cast<int>(starts.size()) <= bucket) starts.push_back(distance);
  }
  starts.resize(static_cast<std::size_t>(per_direction), std::numeric_limits<std::int32_t>::max());
  return starts;
}

int clipped_bucket(std::int64_t relative, int max_distance, bool bidirectional) {
  const auto clipped = static_cast<int>(std::min<std::int64_t>(std::abs(relative), max_distance));
  if (relative <= 0) return clipped;
  return bidirectional ? max_distance + clipped : 0;
}

const std::int32_t* cached_bucket_starts(CpuContext& ctx, int buckets, int max_distance,
                                         bool bidirectional) {
  struct Cache {
    std::map<std::tuple<int, int, bool>, std::vector<std::int32_t>> starts;
  };
  std::vector<std::int32_t>& starts =
      ctx.cache<Cache>().starts[{buckets, max_distance, bidirectional}];
  if (starts.empty()) starts = bucket_starts(buckets, max_distance, bidirectional);
  return starts.data();
}

}  // namespace nunchi::kernels
