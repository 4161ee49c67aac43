// Every block of a product normalises its few rows itself, a warp per row, and stores them in
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
constexpr int kWarpK = 64;  // elements of K per warp

// Normalises `Count` rows into `shared`, and writes the norm's results if `writes`.
template <int Chunks, int Count>
__device__ void normalise_rows(const ResidualNorm<__nv_bfloat16>& n,
                               const FloatNormParameters<Chunks>& float_parameters,
                               const std::int64_t (&row)[Count],
                               __nv_bfloat16* const (&shared)[Count], bool writes) {
  uint4 residual[Count][Chunks], branch[Count][Chunks];
#pragma unroll
  for (int i = 0; i < Count; ++i) {
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
      const std::int64_t offset = row[i] * kNormWidth<Chunks> + column_of(c);
      residual[i][c] = *reinterpret_cast<const uint4*>(n.residual + offset);
      branch[i][c] = make_uint4(0, 0, 0, 0);
      if (n.branch != nullptr) branch[i][c] = *reinterpret_cast<const uint4*>(n.branch + offset);
    }
  }
  float x[Count][Chunks][8];
#pragma unroll
  for (int i = 0; i < Count; ++i) {
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
      unpack(residual[i][c], x[i][c]);
      if (n.branch == nullptr) continue;
      float branch_values[8];
      unpack(branch[i][c], branch_values);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        x[i][c][j] = to_float(from_float<__nv_bfloat16>(x[i][c][j] + branch_values[j]));
      }
      if (writes) store8(n.sum + row[i] * kNormWidth<Chunks> + column_of(c), x[i][c]);
    }
  }
  normalise<Chunks, Count>(
      n, float_parameters, row, writes, x,
      [&](int i, int c, const float(&y)[8]) { store8(shared[i] + column_of(c), y); });
}

// A block computes 16 * Mt outputs of 8 * Nt rows.
template <class Out, int Chunks, int Mt, int Nt>
__global__ void __launch_bounds__(kNormWidth<Chunks> / 2, Chunks <= 2 ? 2 : 1)
    norm_product_kernel(const ResidualNorm<__nv_bfloat16> n, const FewRowsArguments<Out> p) {
  constexpr int kWarps = kNormWidth<Chunks> / kWarpK, kRows = 8 * Nt;
  constexpr int kStride = kNormWidth<Chunks> + kPadding;
  extern __shared__ __align__(16) float partial[];  // [kWarps, kRows, kTileStride], then the rows
  const int warp = threadIdx.x / kWarp, first_row = static_cast<int>(blockIdx.y) * kRows;
  auto* rows = reinterpret_cast<__nv_bfloat16*>(partial + kWarps * kRows * kTileStride<Mt>);
  WeightTile<kWarpK, Mt> weights;
  weights.load(p, static_cast<int>(blockIdx.x));
  NormParameters<Chunks> parameters;
  parameters.load(n);
  wait_for_previous_kernel();
  const uint2 residual = prefetch_residual<16 * Mt>(p, static_cast<int>(blockIdx.x), first_row);
  constexpr int kRowsPerWarp = kRows > kWarps ? kRows / kWarps : 1,
                kRowsPerPass = kRowsPerWarp > 2 ? 2 : kRowsPerWarp;
  if (warp < kRows) {
    const FloatNormParameters<Chunks> float_parameters(parameters);
#pragma unroll
    for (int first = 0; first < kRowsPerWarp; first += kRowsPerPass) {
      std::int64_t row[kRowsPerPass];
      __nv_bfloat16* shared[kRowsPerPass];
#pragma unroll
      for (int i = 0; i < kRowsPerPass; ++i) {
        const int tile_row = warp + (first + i) * kWarps;
        // Rows past the end repeat the last row; duplicate writes are benign.
        row[i] = min(first_row + tile_row, p.rows - 1);
        shared[i] = rows + tile_row * kStride;
      }
      normalise_rows<Chunks, kRowsPerPass>(n, float_parameters, row, shared, blockIdx.x == 0);
    }
  }
  __syncthreads();
  float sums[Mt][Nt][4] = {};
#pragma unroll
  for (int j = 0; j < Nt; ++j) {
    LaneSlice<kWarpK> x;
    x.load(rows + (8 * j + threadIdx.x % kWarp / 4) * kStride + warp * kWarpK);
#pragma unroll
    for (int i = 0; i < Mt; ++i)
      multiply_accumulate(sums[i][j], weights.row_g[i], weights.row_g8[i], x);
  }
  store_sums(partial + warp * kRows * kTileStride<Mt>, sums);
  __syncthreads();
  write_tile<16 * Mt, kTileStride<Mt>>(p, partial,
                                       {.tile = static_cast<int>(blockIdx.x),
                                        .first_row = first_row,
                                        .rows = kRows,
                                        .parts = kWarps},
                                       weights.bias, residual);
}

template <class Out, int Chunks, int Mt, int Nt>
bool launch(CudaContext& ctx, const ResidualNorm<__nv_bfloat16>& norm,
            FewRowsArguments<Out> arguments) {
  constexpr std::size_t kWidth = kNormWidth<Chunks>, kWarps = kWidth / kWarpK;
  arguments.tiles = static_cast<int>(div_ceil(arguments.outputs, 16 * Mt));
  launch_overlapped(
      ctx, "norm_product", norm_product_kernel<Out, Chunks, Mt, Nt>,
      {.blocks = dim3(static_cast<unsigned>(arguments.tiles), blocks_for(arguments.rows, 8 * Nt)),
       .threads = kWarps * kWarp,
       .shared = kWarps * 8 * Nt * kTileStride<Mt> * sizeof(float) +
                 8 * Nt * (kWidth + kPadding) * sizeof(__nv_bfloat16)},
      norm, arguments);
  return true;
}

// Returns false if the product does not suit this kernel.
template <class C>
bool try_launch(CudaContext& ctx, const NormProduct<BFloat16, C>& p) {
  const Product<BFloat16, C>& product = p.product;
  if (ctx.deterministic() || product.m > kMaxFewRows || !can_fuse_norm(p.norm) ||
      !suits_few_rows(product)) {
    return false;
  }
  // If not all blocks run at once, the repeated normalisation costs more than a separate kernel.
  const auto runs_in_one_wave = [&](std::int64_t mt, std::int64_t nt) {
    return div_ceil(product.n, 16 * mt) * div_ceil(product.m, 8 * nt) <= 2 * ctx.multiprocessors();
  };
  const ResidualNorm<__nv_bfloat16> norm = native(p.norm);
  using Out = Native<C>;
  const FewRowsArguments<Out> arguments = few_rows_arguments(product);
  if (runs_in_one_wave(1, 1)) {
    return product.k == 256   ? launch<Out, 1, 1, 1>(ctx, norm, arguments)
           : product.k == 512 ? launch<Out, 2, 1, 1>(ctx, norm, arguments)
                              : launch<Out, 4, 1, 1>(ctx, norm, arguments);
  }
  if (product.k == 1024 || !runs_in_one_wave(2, 2)) return false;
  return product.k == 256 ? launch<Out, 1, 2, 2>(ctx, norm, arguments)
                          : launch<Out, 2, 2, 2>(ctx, norm, arguments);
}

}  // namespace

template <class Target, class T, class C>
void compute(ContextOf<Target>& ctx, const NormProduct<T, C>& p) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    check_product(p.product);
    if (try_launch(ctx, p)) return;
    if constexpr (std::is_same_v<C, BFloat16>) {
      if (try_medium_rows_product(ctx, p)) return;
    }
  }
  run_unprofiled(ctx, p.norm);
  run_unprofiled(ctx, p.product);
}
template void compute<Cuda>(CudaContext&, const NormProduct<float>&);
template void compute<Cuda>(CudaContext&, const NormProduct<BFloat16>&);
template void compute<Cuda>(CudaContext&, const NormProduct<BFloat16, float>&);

}  // namespace nunchi::kernels
