// The starts of T5 buckets, computed once per shape and cached by the context.
#pragma once

#include <cstdint>

#include "nunchi/device/context.h"

namespace nunchi::kernels {

// Returns bucket_starts() of these arguments; valid as long as the context lives. Not inline:
// unlike the kernels that call it, it is compiled once for all instruction sets.
const std::int32_t* cached_bucket_starts(CpuContext& ctx, int buckets, int max_distance,
                                         bool bidirectional);

}  // namespace nunchi::kernels
