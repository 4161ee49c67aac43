// A block owns 16 or 32 outputs of up to 32 rows and fetches their weight before begin().
//
// The order in which a sum is added depends on K alone: how many outputs and rows a block takes,
// and how many tiles of outputs one after another, does not show in the result.
#include "nunchi/kernels/cuda/product/row_product.h"

#include "nunchi/kernels/cuda/product/row_tile.h"

namespace nunchi::kernels {
namespace {

// The weights of 16 * Mt outputs by 8 * Nt rows of x at a time; blocks of the grid's x take tiles
// of outputs, of its y tiles of rows. Many: a block takes a tile after another and holds two of
// them.
template <class N, int Ks, int Mt, int Nt, bool Many>
__global__ void __launch_bounds__(kMostThreads) row_product_kernel(RowJob<N> p) {
  extern __shared__ __align__(16) float partial[];  // [warps, 8 * Nt, kColumns]
  const int g = threadIdx.x % kWarp / 4, warp = threadIdx.x / kWarp;
  const int first_row = static_cast<int>(blockIdx.y) * 8 * Nt;
  const int blocks = static_cast<int>(gridDim.x);
  int tile = static_cast<int>(blockIdx.x);
  WeightTile<Ks, Mt> first, second;
  first.load(p, tile);
  if constexpr (Many) {
    if (tile + blocks < p.tiles) second.load(p, tile + blocks);
  }
  begin();
  uint2 added = first_added<16 * Mt>(p, tile, first_row);
  WarpShare<Ks> x[Nt];
#pragma unroll
  for (int j = 0; j < Nt; ++j) {
    // Past the last row as past the last output.
    const int row = min(first_row + 8 * j + g, p.rows - 1);
    x[j].load(p.x + row * p.k + warp * Ks);
  }
  // Never: without a branch the compiler waits for the first rows before it asks for the next.
  if (p.tiles < 0) __nanosleep(1);
  // Whether another tile follows.
  const auto take = [&](WeightTile<Ks, Mt>& weights) {
    float sums[Mt][Nt][4] = {};
#pragma unroll
    for (int i = 0; i < Mt; ++i) {
#pragma unroll
      for (int j = 0; j < Nt; ++j) add_pieces(sums[i][j], weights.low[i], weights.high[i], x[j]);
    }
    const uint2 bias = weights.bias;
    const int next = tile + blocks;
    if (Many && next + blocks < p.tiles) weights.load(p, next + blocks);
    keep_sums(partial + warp * 8 * Nt * kColumns<Mt>, sums);
    __syncthreads();
    write_tile<16 * Mt, kColumns<Mt>>(
        p, partial, {tile, first_row, 8 * Nt, static_cast<int>(blockDim.x) / kWarp}, bias, added);
    if constexpr (Many) added = first_added<16 * Mt>(p, next, first_row);
    tile = next;
    if (!Many || tile >= p.tiles) return false;
    __syncthreads();
    return true;
  };
  while (take(first) && take(second)) {
  }
}

// How a product is cut up.
struct Plan {
  int ks, mt, nt;
  bool many;
};

// Bytes that all blocks together may fetch: more of the weight, since several blocks read the same,
// takes longer than the kernel before runs; more of the rows, and a library is faster.
constexpr std::int64_t kMostBytes = std::int64_t{8} << 20;
// Tiles of outputs for each multiprocessor from which on blocks take one after another.
constexpr std::int64_t kManyTiles = 4;

// False: a library's work.
bool plan_product(std::int64_t m, std::int64_t n, std::int64_t k, int multiprocessors, Plan& plan) {
  if (m > kMostRows || n > INT32_MAX - 32) return false;
  // By K alone: it decides the order of the sums.
  plan.ks = k <= kMostWarps * 64 ? 64 : k <= kMostWarps * 128 ? 128 : 256;
  if (k % plan.ks != 0 || k > kMostWarps * 256) return false;
  plan.many = parts(n, 16) > kManyTiles * multiprocessors;
  plan.mt = m > 16 && !plan.many && plan.ks < 256 ? 2 : 1;
  const std::int64_t tiles = parts(n, 16 * plan.mt);
  const int most = plan.ks == 256 ? 1 : plan.many || (plan.mt == 2 && plan.ks == 64) ? 4 : 2;
  plan.nt = 1;
  while (plan.nt < most && 8 * plan.nt < m) plan.nt *= 2;
  // A weight that fills the machine several times is read once.
  if (plan.many) return plan.ks == 64 && 8 * plan.nt >= m;
  if (2 * tiles * parts(m, 8 * plan.nt) * 8 * plan.nt * k > kMostBytes) return false;
  // Multiprocessors that would be idle take rows.
  while (plan.nt > 1) {
    const std::int64_t row_tiles = parts(m, 4 * plan.nt);
    if (tiles * row_tiles > multiprocessors || 2 * n * k * row_tiles > kMostBytes) break;
    plan.nt /= 2;
  }
  return true;
}

template <class N, int Ks, int Mt, int Nt, bool Many>
void start(CudaContext& ctx, RowJob<N> job) {
  constexpr auto kernel = row_product_kernel<N, Ks, Mt, Nt, Many>;
  job.tiles = static_cast<int>(parts(job.outputs, 16 * Mt));
  const auto warps = static_cast<unsigned>(job.k / Ks);
  Grid grid{.blocks = dim3(static_cast<unsigned>(job.tiles), blocks_for(job.rows, 8 * Nt)),
            .threads = warps * kWarp,
            .shared = warps * 8 * Nt * kColumns<Mt> * sizeof(float)};
  constexpr std::size_t kPlainShared = std::size_t{48} << 10;
  if (grid.shared > kPlainShared) {
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(grid.shared)),
               "row_product");
  }
  if constexpr (Many) {
    int each = 0;
    check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                   &each, kernel, static_cast<int>(grid.threads), grid.shared),
               "row_product");
    const std::int64_t turns = parts(job.tiles, std::int64_t{each} * ctx.multiprocessors());
    grid.blocks.x = blocks_for(job.tiles, turns);
  }
  start_early(ctx, "row_product", kernel, grid, job);
}

template <class N>
void start(CudaContext& ctx, const Plan& plan, const RowJob<N>& job) {
  const auto with_rows = [&]<int Ks, int Mt, bool Many, int Most>() {
    if (plan.nt == 1) return start<N, Ks, Mt, 1, Many>(ctx, job);
    if constexpr (Most >= 2) {
      if (plan.nt == 2) return start<N, Ks, Mt, 2, Many>(ctx, job);
    }
    if constexpr (Most >= 4) {
      if (plan.nt == 4) return start<N, Ks, Mt, 4, Many>(ctx, job);
    }
  };
  if (plan.many) return with_rows.template operator()<64, 1, true, 4>();
  if (plan.ks == 64) {
    return plan.mt == 1 ? with_rows.template operator()<64, 1, false, 2>()
                        : with_rows.template operator()<64, 2, false, 4>();
  }
  if (plan.ks == 128) {
    return plan.mt == 1 ? with_rows.template operator()<128, 1, false, 2>()
                        : with_rows.template operator()<128, 2, false, 2>();
  }
  with_rows.template operator()<256, 1, false, 1>();
}

}  // namespace

template <class C>
bool multiply_rows(CudaContext& ctx, const Product<BFloat16, C>& p) {
  Plan plan;
  if (!is_row_product(p) || !plan_product(p.m, p.n, p.k, ctx.multiprocessors(), plan)) return false;
  start(ctx, plan, row_job(p));
  return true;
}

template bool multiply_rows(CudaContext& ctx, const Product<BFloat16, BFloat16>& p);
template bool multiply_rows(CudaContext& ctx, const Product<BFloat16, float>& p);

}  // namespace nunchi::kernels
