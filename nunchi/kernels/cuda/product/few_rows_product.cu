// A block computes 16 or 32 outputs of up to 32 rows and loads their weight before
// wait_for_previous_kernel().
//
// The order of summation depends on K alone: the outputs and rows per block, and the number of
// tiles that a block computes, do not affect the result.
#include "nunchi/kernels/cuda/product/few_rows_product.h"

#include "nunchi/kernels/cuda/product/few_rows_tile.h"

namespace nunchi::kernels {
namespace {

// Multiplies the weights of 16 * Mt outputs by 8 * Nt rows of x at a time; blockIdx.x selects the
// tile of outputs, blockIdx.y the tile of rows. Loops: a block loops over tiles of outputs and
// holds the weights of two of them.
template <class Out, int Ks, int Mt, int Nt, bool Loops>
__global__ void __launch_bounds__(kMaxThreads) few_rows_kernel(FewRowsArguments<Out> p) {
  extern __shared__ __align__(16) float partial[];  // [warps, 8 * Nt, kTileStride]
  const int g = threadIdx.x % kWarp / 4, warp = threadIdx.x / kWarp;
  const int first_row = static_cast<int>(blockIdx.y) * 8 * Nt;
  const int blocks = static_cast<int>(gridDim.x);
  int tile = static_cast<int>(blockIdx.x);
  WeightTile<Ks, Mt> first, second;
  first.load(p, tile);
  if constexpr (Loops) {
    if (tile + blocks < p.tiles) second.load(p, tile + blocks);
  }
  wait_for_previous_kernel();
  uint2 residual = prefetch_residual<16 * Mt>(p, tile, first_row);
  LaneSlice<Ks> x[Nt];
#pragma unroll
  for (int j = 0; j < Nt; ++j) {
    // Rows past the end repeat the last row and are not written.
    const int row = min(first_row + 8 * j + g, p.rows - 1);
    x[j].load(p.x + row * p.k + warp * Ks);
  }
  // Never taken: without this branch the compiler waits for the first rows before it loads the
  // next.
  if (p.tiles < 0) __nanosleep(1);
  // Computes one tile; returns whether another follows.
  const auto compute_tile = [&](WeightTile<Ks, Mt>& weights) {
    float sums[Mt][Nt][4] = {};
#pragma unroll
    for (int i = 0; i < Mt; ++i) {
#pragma unroll
      for (int j = 0; j < Nt; ++j)
        multiply_accumulate(sums[i][j], weights.row_g[i], weights.row_g8[i], x[j]);
    }
    const uint2 bias = weights.bias;
    const int next = tile + blocks;
    if (Loops && next + blocks < p.tiles) weights.load(p, next + blocks);
    store_sums(partial + warp * 8 * Nt * kTileStride<Mt>, sums);
    __syncthreads();
    write_tile<16 * Mt, kTileStride<Mt>>(p, partial,
                                         {.tile = tile,
                                          .first_row = first_row,
                                          .rows = 8 * Nt,
                                          .parts = static_cast<int>(blockDim.x) / kWarp},
                                         bias, residual);
    if constexpr (Loops) residual = prefetch_residual<16 * Mt>(p, next, first_row);
    tile = next;
    if (!Loops || tile >= p.tiles) return false;
    __syncthreads();
    return true;
  };
  while (compute_tile(first) && compute_tile(second)) {
  }
}

// How a product is split into tiles: the template arguments of few_rows_kernel().
struct Plan {
  int ks, mt, nt;
  bool loops;
};

// Limit of the bytes that all blocks together load of the weight, and of the rows; several blocks
// load the same elements. More of the weight takes longer than the previous kernel runs; with more
// of the rows, cuBLASLt is faster.
constexpr std::int64_t kMaxBytes = std::int64_t{8} << 20;
// Tiles of outputs per multiprocessor above which blocks loop over tiles.
constexpr std::int64_t kMaxTilesWithoutLoop = 4;

// Returns false if cuBLASLt should compute the product.
bool plan_product(std::int64_t m, std::int64_t n, std::int64_t k, int multiprocessors, Plan& plan) {
  if (m > kMaxFewRows || n > INT32_MAX - 32) return false;
  // Depends on K alone: it determines the order of summation.
  plan.ks = k <= kMaxWarps * 64 ? 64 : k <= kMaxWarps * 128 ? 128 : 256;
  if (k % plan.ks != 0 || k > kMaxWarps * 256) return false;
  plan.loops = div_ceil(n, 16) > kMaxTilesWithoutLoop * multiprocessors;
  plan.mt = m > 16 && !plan.loops && plan.ks < 256 ? 2 : 1;
  const std::int64_t tiles = div_ceil(n, 16 * plan.mt);
  const int max_nt = plan.ks == 256 ? 1 : plan.loops || (plan.mt == 2 && plan.ks == 64) ? 4 : 2;
  plan.nt = 1;
  while (plan.nt < max_nt && 8 * plan.nt < m) plan.nt *= 2;
  // Blocks that loop over tiles read the weight only once.
  if (plan.loops) return plan.ks == 64 && 8 * plan.nt >= m;
  if (2 * tiles * div_ceil(m, 8 * plan.nt) * 8 * plan.nt * k > kMaxBytes) return false;
  // Splits the rows to use idle multiprocessors.
  while (plan.nt > 1) {
    const std::int64_t row_tiles = div_ceil(m, 4 * plan.nt);
    if (tiles * row_tiles > multiprocessors || 2 * n * k * row_tiles > kMaxBytes) break;
    plan.nt /= 2;
  }
  return true;
}

template <class Out, int Ks, int Mt, int Nt, bool Loops>
void launch(CudaContext& ctx, FewRowsArguments<Out> arguments) {
  constexpr auto kernel = few_rows_kernel<Out, Ks, Mt, Nt, Loops>;
  arguments.tiles = static_cast<int>(div_ceil(arguments.outputs, 16 * Mt));
  const auto warps = static_cast<unsigned>(arguments.k / Ks);
  Grid grid{
      .blocks = dim3(static_cast<unsigned>(arguments.tiles), blocks_for(arguments.rows, 8 * Nt)),
      .threads = warps * kWarp,
      .shared = warps * 8 * Nt * kTileStride<Mt> * sizeof(float)};
  constexpr std::size_t kDefaultShared = std::size_t{48} << 10;
  if (grid.shared > kDefaultShared) {
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(grid.shared)),
               "row_product");
  }
  if constexpr (Loops) {
    int blocks_per_multiprocessor = 0;
    check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                   &blocks_per_multiprocessor, kernel, static_cast<int>(grid.threads), grid.shared),
               "row_product");
    const std::int64_t rounds =
        div_ceil(arguments.tiles, std::int64_t{blocks_per_multiprocessor} * ctx.multiprocessors());
    grid.blocks.x = blocks_for(arguments.tiles, rounds);
  }
  launch_overlapped(ctx, "row_product", kernel, grid, arguments);
}

template <class Out>
void launch(CudaContext& ctx, const Plan& plan, const FewRowsArguments<Out>& arguments) {
  const auto dispatch_rows = [&]<int Ks, int Mt, bool Loops, int MaxNt>() {
    if (plan.nt == 1) return launch<Out, Ks, Mt, 1, Loops>(ctx, arguments);
    if constexpr (MaxNt >= 2) {
      if (plan.nt == 2) return launch<Out, Ks, Mt, 2, Loops>(ctx, arguments);
    }
    if constexpr (MaxNt >= 4) {
      if (plan.nt == 4) return launch<Out, Ks, Mt, 4, Loops>(ctx, arguments);
    }
  };
  if (plan.loops) return dispatch_rows.template operator()<64, 1, true, 4>();
  if (plan.ks == 64) {
    return plan.mt == 1 ? dispatch_rows.template operator()<64, 1, false, 2>()
                        : dispatch_rows.template operator()<64, 2, false, 4>();
  }
  if (plan.ks == 128) {
    return plan.mt == 1 ? dispatch_rows.template operator()<128, 1, false, 2>()
                        : dispatch_rows.template operator()<128, 2, false, 2>();
  }
  dispatch_rows.template operator()<256, 1, false, 1>();
}

}  // namespace

template <class C>
bool try_few_rows_product(CudaContext& ctx, const Product<BFloat16, C>& p) {
  Plan plan;
  if (!suits_few_rows(p) || !plan_product(p.m, p.n, p.k, ctx.multiprocessors(), plan)) return false;
  launch(ctx, plan, few_rows_arguments(p));
  return true;
}

template bool try_few_rows_product(CudaContext& ctx, const Product<BFloat16, BFloat16>& p);
template bool try_few_rows_product(CudaContext& ctx, const Product<BFloat16, float>& p);

}  // namespace nunchi::kernels
