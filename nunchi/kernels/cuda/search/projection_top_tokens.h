// The most likely tokens of up to 1,024 rows, found in the kernel that computes their logits. Host
// code can include this header too.
#pragma once

#include "nunchi/kernels/projection_top_tokens.h"

namespace nunchi::kernels {

// Whether compute() can do so (tiled_top.h); otherwise it writes all logits and reads them again.
bool can_find_in_tiles(const CudaContext& ctx, const ProjectionTopTokens<BFloat16>& p);

}  // namespace nunchi::kernels
