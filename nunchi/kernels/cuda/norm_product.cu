// Every block of a product normalises the few rows itself, a warp a row, and leaves them in shared
// memory as the product's warps read them; the first block of each tile of rows also writes what a
// normalisation writes. The product is row_product.cu's, to the bit.
#include "nunchi/kernels/norm_product.h"

#include "nunchi/kernels/cuda/row_norm.h"
#include "nunchi/kernels/cuda/row_product.h"
#include "nunchi/kernels/cuda/row_tile.h"

namespace nunchi::kernels::cuda {
namespace {

constexpr int kRows = 8;  // of a block
// Elements between two rows in shared memory, beyond K: neighbouring rows in other banks.
constexpr int kPadding = 32;
// With more rows, blocks that all normalise the same rows do so longer than a kernel takes.
constexpr std::int64_t kMostNormRows = 16;

// The row by this warp: to `shared`, and to the norm's results where `writes`.
template <int Chunks>
__device__ void normalise_row(const NormJob& n, const NormParameters<Chunks>& parameters,
                              std::int64_t row, __nv_bfloat16* shared, bool writes) {
  const std::int64_t at = row * kNormWidth<Chunks>;
  // A row past the count can be read, so that nothing waits for the count.
  const std::int64_t count = real_rows(n.rows);
  uint4 residual[Chunks], branch[Chunks];
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    residual[c] = *reinterpret_cast<const uint4*>(n.residual + at + column_of(c));
    branch[c] = make_uint4(0, 0, 0, 0);
    if (n.branch != nullptr) {
      branch[c] = *reinterpret_cast<const uint4*>(n.branch + at + column_of(c));
    }
  }
  const bool real = row < count;
  float x[Chunks][8];
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    float more[8];
    unpack(residual[c], x[c]);
    unpack(branch[c], more);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      x[c][j] = real ? to_float(from_float<__nv_bfloat16>(x[c][j] + more[j])) : 0.0f;
    }
    if (writes && n.branch != nullptr) store8(n.sum + at + column_of(c), x[c]);
  }
  normalise<Chunks>(n, parameters, {.row = row, .real = real, .writes = writes}, x,
                    [&](int c, const float(&y)[8]) { store8(shared + column_of(c), y); });
}

template <class N, int Chunks>
__global__ void __launch_bounds__(kNormWidth<Chunks> / 2)
    norm_product_kernel(NormJob n, RowJob<N> p) {
  constexpr int kShare = 64, kWarps = kNormWidth<Chunks> / kShare;
  constexpr int kStride = kNormWidth<Chunks> + kPadding;
  extern __shared__ __align__(16) float partial[];  // [kWarps, kRows, kColumns], then the rows
  const int warp = threadIdx.x / kWarp, first_row = static_cast<int>(blockIdx.y) * kRows;
  auto* rows = reinterpret_cast<__nv_bfloat16*>(partial + kWarps * kRows * kColumns<1>);
  WeightTile<kShare, 1> weights;
  weights.load(p, static_cast<int>(blockIdx.x));
  NormParameters<Chunks> parameters;
  parameters.load(n);
  begin();
  const uint2 added = first_added<16>(p, static_cast<int>(blockIdx.x), first_row);
  const int count = min(kRows, p.rows - first_row);
#pragma unroll
  for (int turn = 0; turn < kRows; turn += kWarps) {
    const int row = turn + warp;
    if (row >= count) continue;
    normalise_row<Chunks>(n, parameters, first_row + row, rows + row * kStride, blockIdx.x == 0);
  }
  __syncthreads();
  // Past the last row, the last again; what comes of it is not written.
  const int row = min(static_cast<int>(threadIdx.x) % kWarp / 4, count - 1);
  WarpShare<kShare> x;
  x.load(rows + row * kStride + warp * kShare);
  float sums[1][1][4] = {};
  add_pieces(sums[0][0], weights.low[0], weights.high[0], x);
  keep_sums(partial + warp * kRows * kColumns<1>, sums);
  __syncthreads();
  write_tile<16, kColumns<1>>(p, partial, {static_cast<int>(blockIdx.x), first_row, kRows, kWarps},
                              weights.bias, added);
}

template <class C>
bool fits(CudaContext& ctx, const NormProduct<BFloat16, C>& p) {
  const Product<BFloat16, C>& q = p.product;
  // Where blocks are more than run at once, normalising once more costs more than a kernel does.
  return !ctx.deterministic() && can_be_shared(p.norm) && is_row_product(q) &&
         q.m <= kMostNormRows && parts(q.n, 16) * parts(q.m, kRows) <= 2 * ctx.multiprocessors();
}

template <class C>
void norm_product(CudaContext& ctx, const NormProduct<BFloat16, C>& p) {
  using N = Native<C>;
  if (!fits(ctx, p)) {
    if constexpr (std::is_same_v<C, BFloat16>) {
      if (multiply_tiles(ctx, p)) return;
    }
    compute(ctx, p.norm);
    return compute(ctx, p.product);
  }
  const NormJob norm = norm_job(p.norm);
  RowJob<N> job = row_job(p.product);
  job.tiles = static_cast<int>(parts(p.product.n, 16));
  const auto width = static_cast<std::size_t>(job.k), warps = width / 64;
  const Grid grid{.blocks = dim3(static_cast<unsigned>(job.tiles), blocks_for(job.rows, kRows)),
                  .threads = static_cast<unsigned>(warps * kWarp),
                  .shared = warps * kRows * kColumns<1> * sizeof(float) +
                            kRows * (width + kPadding) * sizeof(__nv_bfloat16)};
  if (width == 256) return start_early(ctx, p.name(), norm_product_kernel<N, 1>, grid, norm, job);
  if (width == 512) return start_early(ctx, p.name(), norm_product_kernel<N, 2>, grid, norm, job);
  start_early(ctx, p.name(), norm_product_kernel<N, 4>, grid, norm, job);
}

}  // namespace

template <>
void compute(CudaContext& ctx, const NormProduct<float>& p) {
  compute(ctx, p.norm);
  compute(ctx, p.product);
}
template <>
void compute(CudaContext& ctx, const NormProduct<BFloat16>& p) {
  norm_product(ctx, p);
}
template <>
void compute(CudaContext& ctx, const NormProduct<BFloat16, float>& p) {
  norm_product(ctx, p);
}

}  // namespace nunchi::kernels::cuda
