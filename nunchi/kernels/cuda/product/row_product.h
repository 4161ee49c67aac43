// Products of a few rows with a weight, for decode steps.
//
// Such a product is over long before its weight has come from memory. So it is started early and
// fetches weight and bias while the kernel before it still runs: these are parameters, which no
// kernel writes that is started early itself (see begin()).
#pragma once

#include "nunchi/kernels/norm_product.h"
#include "nunchi/kernels/product.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

// More rows than this are not few.
constexpr std::int64_t kMostRows = 64;

// Whether the product was started; false: it is not one that this is for. A row's bits depend on
// the row and the weight alone, whatever the number of rows.
template <class C>
bool multiply_rows(CudaContext& ctx, const Product<BFloat16, C>& p);

// The same for a few hundred rows, which are still fewer than a library is made for. How a product
// is cut up depends on the number of rows, and its last bits on that.
bool multiply_tiles(CudaContext& ctx, const Product<BFloat16>& p);
// With a normalisation of the rows before it.
bool multiply_tiles(CudaContext& ctx, const NormProduct<BFloat16>& p);

}  // namespace nunchi::kernels
