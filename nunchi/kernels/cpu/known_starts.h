// Where T5's buckets begin, computed once for each shape of them and kept by a context.
#pragma once

#include <cstdint>

#include "nunchi/device/context.h"

namespace nunchi::kernels {

// bucket_starts() of these, as long as the context lives. Not inline: it is compiled for every
// processor, unlike the kernels that ask for it.
const std::int32_t* known_starts(CpuContext& ctx, int buckets, int max_distance,
                                 bool bidirectional);

}  // namespace nunchi::kernels
