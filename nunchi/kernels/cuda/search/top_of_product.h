// The most likely tokens of up to 1,024 rows, found where their logits are computed. For host code
// too.
#pragma once

#include "nunchi/kernels/top_of_product.h"

namespace nunchi::kernels {

// Whether compute() finds them so (tiled_top.h); otherwise it writes all logits and reads them
// again.
bool found_in_tiles(const CudaContext& ctx, const TopOfProduct<BFloat16>& p);

}  // namespace nunchi::kernels
