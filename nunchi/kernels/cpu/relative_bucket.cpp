#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "nunchi/kernels/attention.h"

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
  const double grown = std::log(static_cast<double>(relative) / exact) /
                       std::log(static_cast<double>(max_distance) / exact) * (buckets - exact);
  return first + std::min(exact + static_cast<int>(grown), buckets - 1);
}

int clipped_bucket(std::int64_t relative, int max_distance, bool bidirectional) {
  const auto clipped = static_cast<int>(std::min<std::int64_t>(std::abs(relative), max_distance));
  if (relative <= 0) return clipped;
  return bidirectional ? max_distance + clipped : 0;
}

}  // namespace nunchi::kernels
