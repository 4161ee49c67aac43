// The most likely tokens of up to 1,024 rows, found where their scores are computed.
#pragma once

#include "nunchi/kernels/top_of_product.h"

namespace nunchi::kernels {

// Whether compute() finds them so; otherwise it writes all scores and looks at them.
bool found_in_tiles(const CudaContext& ctx, const TopOfProduct<BFloat16>& p);

}  // namespace nunchi::kernels
