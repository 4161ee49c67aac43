// Products of a few rows with a weight, for decode steps.
//
// Such a product is limited by loading its weight. So it is launched overlapped and loads weight
// and bias while the previous kernel still runs: these are parameters, which no overlapped kernel
// writes (see wait_for_previous_kernel()).
#pragma once

#include "nunchi/kernels/norm_product.h"
#include "nunchi/kernels/product.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

// The largest number of rows that try_few_rows_product() supports.
constexpr std::int64_t kMaxFewRows = 64;

// Returns false, and launches nothing, if the product does not suit this kernel. A row's bits
// depend only on the row and the weight, not on the number of rows.
template <class C>
bool try_few_rows_product(CudaContext& ctx, const Product<BFloat16, C>& p);

// The same for up to 1,024 rows, still too few for cuBLASLt to be fast. The tiling, and with it the
// last bits, depends on the number of rows.
bool try_medium_rows_product(CudaContext& ctx, const Product<BFloat16>& p);
// With a normalisation of the rows before the product.
bool try_medium_rows_product(CudaContext& ctx, const NormProduct<BFloat16>& p);

}  // namespace nunchi::kernels
