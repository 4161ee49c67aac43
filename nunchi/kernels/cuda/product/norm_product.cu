// Every block of a product normalises the few rows itself, a warp per row, and stores them in
// shared memory for the product's warps; the first block of each tile of rows also writes the
// norm's results. The product has the same bits as in few_rows_product.cu.
#include "nunchi/kernels/norm_product.h"

#include "nunchi/kernels/cuda/product/few_rows_norm.h"
#include "nunchi/kernels/cuda/product/few_rows_product.h"
#include "nunchi/kernels/cuda/product/few_rows_tile.h"

namespace nunchi::kernels {
namespace {

// Padding of rows in shared memory: neighbouring rows start in different banks.
constexpr int kPadding = 32;
constexpr int kShare = 64;  // of K, per warp

// Normalises these rows into `shared`, and writes the norm's results if `writes`.
template <int Chunks, int Count>
__device__ void normalise_rows(const ResidualNorm<__nv_bfloat16>& n,
                               const NormFactors<Chunks>& factors, const std::int64_t (&row)[Count],
                               __nv_bfloat16* const (&shared)[Count], bool writes) {
  uint4 residual[Count][Chunks], branch[Count][Chunks];
#pragma unroll
  for (int i = 0; i < Count; ++i) {
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
      const std::int64_t at = row[i] * kNormWidth<Chunks> + column_of(c);
      residual[i][c] = *reinterpret_cast<const uint4*>(n.residual + at);
      branch[i][c] = make_uint4(0, 0, 0, 0);
      if (n.branch != nullptr) branch[i][c] = *reinterpret_cast<const uint4*>(n.branch + at);
    }
  }
  float x[Count][Chunks][8];
#pragma unroll
  for (int i = 0; i < Count; ++i) {
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
      unpack(residual[i][c], x[i][c]);
      if (n.branch == nullptr) continue;
      float more[8];
      unpack(branch[i][c], more);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        x[i][c][j] = to_float(from_float<__nv_bfloat16>(x[i][c][j] + more[j]));
      }
      if (writes) store8(n.sum + row[i] * kNormWidth<Chunks> + column_of(c), x[i][c]);
    }
  }
  normalise<Chunks, Count>(n, factors, row, writes, x, [&](int i, int c, const float(&y)[8]) {
    store8(shared[i] + column_of(c), y);
  });
}

// A block computes 16 * Mt outputs of 8 * Nt rows.
template <class N, int Chunks, int Mt, int Nt>
__global__ void __launch_bounds__(kNormWidth<Chunks> / 2, Chunks <= 2 ? 2 : 1)
    norm_product_kernel(const ResidualNorm<__nv_bfloat16> n, const FewRowsArguments<N> p) {
  constexpr int kWarps = kNormWidth<Chunks> / kShare, kRows = 8 * Nt;
  constexpr int kStride = kNormWidth<Chunks> + kPadding;
  extern __shared__ __align__(16) float partial[];  // [kWarps, kRows, kColumns], then the rows
  const int warp = threadIdx.x / kWarp, first_row = static_cast<int>(blockIdx.y) * kRows;
  auto* rows = reinterpret_cast<__nv_bfloat16*>(partial + kWarps * kRows * kColumns<Mt>);
  WeightTile<kShare, Mt> weights;
  weights.load(p, static_cast<int>(blockIdx.x));
  NormParameters<Chunks> parameters;
  parameters.load(n);
  wait_for_previous_kernel();
  const uint2 added = prefetch_added<16 * Mt>(p, static_cast<int>(blockIdx.x), first_row);
  constexpr int kEach = kRows > kWarps ? kRows / kWarps : 1, kAtOnce = kEach > 2 ? 2 : kEach;
  if (warp < kRows) {
    const NormFactors<Chunks> factors(parameters);
#pragma unroll
    for (int first = 0; first < kEach; first += kAtOnce) {
      std::int64_t row[kAtOnce];
      __nv_bfloat16* shared[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int own = warp + (first + i) * kWarps;
        // Rows past the end repeat the last row; duplicate writes are benign.
        row[i] = min(first_row + own, p.rows - 1);
        shared[i] = rows + own * kStride;
      }
      normalise_rows<Chunks, kAtOnce>(n, factors, row, shared, blockIdx.x == 0);
    }
  }
  __syncthreads();
  float sums[Mt][Nt][4] = {};
#pragma unroll
  for (int j = 0; j < Nt; ++j) {
    LaneShare<kShare> x;
    x.load(rows + (8 * j + threadIdx.x % kWarp / 4) * kStride + warp * kShare);
#pragma unroll
    for (int i = 0; i < Mt; ++i) add_pieces(sums[i][j], weights.low[i], weights.high[i], x);
  }
  store_sums(partial + warp * kRows * kColumns<Mt>, sums);
  __syncthreads();
  write_tile<16 * Mt, kColumns<Mt>>(
      p, partial, {static_cast<int>(blockIdx.x), first_row, kRows, kWarps}, weights.bias, added);
}

template <class N, int Chunks, int Mt, int Nt>
bool start(CudaContext& ctx, const ResidualNorm<__nv_bfloat16>& norm,
           FewRowsArguments<N> arguments) {
  constexpr std::size_t kWidth = kNormWidth<Chunks>, kWarps = kWidth / kShare;
  arguments.tiles = static_cast<int>(div_ceil(arguments.outputs, 16 * Mt));
  launch_overlapped(
      ctx, "norm_product", norm_product_kernel<N, Chunks, Mt, Nt>,
      {.blocks = dim3(static_cast<unsigned>(arguments.tiles), blocks_for(arguments.rows, 8 * Nt)),
       .threads = kWarps * kWarp,
       .shared = kWarps * 8 * Nt * kColumns<Mt> * sizeof(float) +
                 8 * Nt * (kWidth + kPadding) * sizeof(__nv_bfloat16)},
      norm, arguments);
  return true;
}

// False: the product does not suit this kernel.
template <class C>
bool start(CudaContext& ctx, const NormProduct<BFloat16, C>& p) {
  const Product<BFloat16, C>& q = p.product;
  if (ctx.deterministic() || q.m > kMaxRows || !can_be_shared(p.norm) || !suits_few_rows(q)) {
    return false;
  }
  // If not all blocks run at once, the repeated normalisation costs more than a separate kernel.
  const auto runs_at_once = [&](std::int64_t mt, std::int64_t nt) {
    return div_ceil(q.n, 16 * mt) * div_ceil(q.m, 8 * nt) <= 2 * ctx.multiprocessors();
  };
  const ResidualNorm<__nv_bfloat16> norm = native(p.norm);
  const FewRowsArguments<Native<C>> arguments = few_rows_arguments(q);
  using N = Native<C>;
  if (runs_at_once(1, 1)) {
    return q.k == 256   ? start<N, 1, 1, 1>(ctx, norm, arguments)
           : q.k == 512 ? start<N, 2, 1, 1>(ctx, norm, arguments)
                        : start<N, 4, 1, 1>(ctx, norm, arguments);
  }
  if (q.k == 1024 || !runs_at_once(2, 2)) return false;
  return q.k == 256 ? start<N, 1, 2, 2>(ctx, norm, arguments)
                    : start<N, 2, 2, 2>(ctx, norm, arguments);
}

}  // namespace

template <class Target, class T, class C>
void compute(ContextOf<Target>& ctx, const NormProduct<T, C>& p) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    check_product(p.product);
    if (start(ctx, p)) return;
    if constexpr (std::is_same_v<C, BFloat16>) {
      if (medium_rows_product(ctx, p)) return;
    }
  }
  execute(ctx, p.norm);
  execute(ctx, p.product);
}
template void compute<Cuda>(CudaContext&, const NormProduct<float>&);
template void compute<Cuda>(CudaContext&, const NormProduct<BFloat16>&);
template void compute<Cuda>(CudaContext&, const NormProduct<BFloat16, float>&);

}  // namespace nunchi::kernels
