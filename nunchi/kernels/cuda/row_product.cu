// A block owns 16 or 32 outputs of up to 32 rows. Its warps share K: each holds its part of the
// weight in registers, fetched before begin(), and multiplies it by its part of the rows; the
// warps' sums are added through shared memory, in the warps' order. The weight is mma's A, the rows
// are its B; both are read as RowShares.
//
// The order in which a sum is added depends on K alone: how many outputs and rows a block takes,
// and how many tiles of outputs one after another, does not show in the result.
#include "nunchi/kernels/cuda/row_product.h"

#include "nunchi/kernels/cuda/device.h"
#include "nunchi/kernels/cuda/mma.h"

namespace nunchi::kernels::cuda {
namespace {

constexpr int kMostWarps = 16;

template <class N>
struct Job {
  int rows, outputs, tiles;  // tiles of outputs
  std::int64_t k;
  const __nv_bfloat16* x;       // [rows, k]
  const __nv_bfloat16* weight;  // [outputs, k]
  const __nv_bfloat16* bias;    // [outputs], or null
  bool relu;
  N* out;  // [rows, outputs]
};

// Read once: the first-level cache has nothing to keep. Volatile: it stays before begin().
__device__ inline uint4 load_weight(const __nv_bfloat16* from) {
  uint4 x;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(from));
  return x;
}

// A lane's part of one row over the Ks elements that are the warp's, in pieces. Each is summed by
// itself: a chain of four products, each of which waits for the one before, and not of four times
// as many.
template <int Ks>
struct Share {
  static constexpr int kPiece = 64, kPieces = Ks / kPiece;
  RowShare<kPiece> piece[kPieces];

  // `from` is the first element that is the lane's.
  __device__ void load_weight(const __nv_bfloat16* from) {
#pragma unroll
    for (int i = 0; i < Ks / 32; ++i) {
      const uint4 words = cuda::load_weight(from + 32 * i);
      std::uint32_t* to = piece[i / 2].word + i % 2 * 4;
      to[0] = words.x, to[1] = words.y, to[2] = words.z, to[3] = words.w;
    }
  }
  // `from` is the first element that is the warp's.
  __device__ void load(const __nv_bfloat16* from) {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) piece[i].load(from + kPiece * i, true);
  }
};

template <int Ks>
__device__ void add_pieces(float (&sum)[4], const Share<Ks>& low, const Share<Ks>& high,
                           const Share<Ks>& x) {
  add_dots(sum, low.piece[0], high.piece[0], x.piece[0]);
#pragma unroll
  for (int i = 1; i < Share<Ks>::kPieces; ++i) {
    float part[4] = {};
    add_dots(part, low.piece[i], high.piece[i], x.piece[i]);
#pragma unroll
    for (int e = 0; e < 4; ++e) sum[e] += part[e];
  }
}

// Columns of a tile of outputs in shared memory: a lane of mma's C writes rows two apart, and the
// four padding columns put them into different banks.
template <int Mt>
constexpr int kColumns = 16 * Mt + 4;

// A lane's part of 16 * Mt outputs' weights over the Ks elements that are the warp's, and of their
// bias those four that the thread will add.
template <int Ks, int Mt>
struct Tile {
  Share<Ks> low[Mt], high[Mt];  // outputs g and g + 8 of each 16
  uint2 bias;

  template <class N>
  __device__ void load(const Job<N>& p, int tile) {
    const int g = threadIdx.x % kWarp / 4, first = tile * 16 * Mt;
    const __nv_bfloat16* from = p.weight + threadIdx.x / kWarp * Ks + threadIdx.x % 4 * 8;
#pragma unroll
    for (int i = 0; i < Mt; ++i) {
      // Past the last output its weights are read again; what comes of them is not written.
      low[i].load_weight(from + min(first + 16 * i + g, p.outputs - 1) * p.k);
      high[i].load_weight(from + min(first + 16 * i + g + 8, p.outputs - 1) * p.k);
    }
    const int output = first + threadIdx.x % (4 * Mt) * 4;
    bias = make_uint2(0, 0);
    if (p.bias != nullptr && output < p.outputs) {
      bias = *reinterpret_cast<const uint2*>(p.bias + output);
    }
  }
};

__device__ inline void store4(float* to, const float4& x) { *reinterpret_cast<float4*>(to) = x; }
__device__ inline void store4(__nv_bfloat16* to, const float4& x) {
  *reinterpret_cast<uint2*>(to) = make_uint2(packed(x.x, x.y), packed(x.z, x.w));
}

// This warp's sums of a tile: [8 * Nt rows, kColumns].
template <int Mt, int Nt>
__device__ void keep_sums(float* to, const float (&sums)[Mt][Nt][4]) {
  const int g = threadIdx.x % kWarp / 4, c = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < Mt; ++i) {
#pragma unroll
    for (int j = 0; j < Nt; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        to[(8 * j + 2 * c + e % 2) * kColumns<Mt> + 16 * i + e / 2 * 8 + g] = sums[i][j][e];
      }
    }
  }
}

// All warps' sums, four outputs a thread, and what follows them.
template <int Mt, int Nt, class N>
__device__ void write_tile(const Job<N>& p, const float* partial, int tile, int first_row,
                           const uint2& bias) {
  constexpr int kGroups = 4 * Mt, kApart = 8 * Nt * kColumns<Mt>;
  const int group = threadIdx.x % kGroups, output = tile * 16 * Mt + group * 4;
  const int warps = blockDim.x / kWarp;
  if (output >= p.outputs) return;
  for (int row = threadIdx.x / kGroups; row < min(8 * Nt, p.rows - first_row);
       row += blockDim.x / kGroups) {
    const float* from = partial + row * kColumns<Mt> + group * 4;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (int warp = 0; warp < warps; ++warp) {
      const float4 more = *reinterpret_cast<const float4*>(from + warp * kApart);
      sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
    }
    sum.x += low_half(bias.x), sum.y += high_half(bias.x);
    sum.z += low_half(bias.y), sum.w += high_half(bias.y);
    if (p.relu) {
      // Not fmaxf: a NaN stays.
      sum.x = sum.x < 0 ? 0 : sum.x, sum.y = sum.y < 0 ? 0 : sum.y;
      sum.z = sum.z < 0 ? 0 : sum.z, sum.w = sum.w < 0 ? 0 : sum.w;
    }
    store4(p.out + std::int64_t{first_row + row} * p.outputs + output, sum);
  }
}

// The weights of 16 * Mt outputs by 8 * Nt rows of x at a time; blocks of the grid's x take tiles
// of outputs, of its y tiles of rows. Many: a block takes a tile after another and holds two of
// them.
template <class N, int Ks, int Mt, int Nt, bool Many>
__global__ void __launch_bounds__(kMostWarps* kWarp) row_product_kernel(Job<N> p) {
  extern __shared__ __align__(16) float partial[];  // [warps, 8 * Nt, kColumns]
  const int g = threadIdx.x % kWarp / 4, warp = threadIdx.x / kWarp;
  const int first_row = static_cast<int>(blockIdx.y) * 8 * Nt;
  const int blocks = static_cast<int>(gridDim.x);
  int tile = static_cast<int>(blockIdx.x);
  Tile<Ks, Mt> first, second;
  first.load(p, tile);
  if constexpr (Many) {
    if (tile + blocks < p.tiles) second.load(p, tile + blocks);
  }
  begin();
  Share<Ks> x[Nt];
#pragma unroll
  for (int j = 0; j < Nt; ++j) {
    // Past the last row as past the last output.
    const int row = min(first_row + 8 * j + g, p.rows - 1);
    x[j].load(p.x + row * p.k + warp * Ks);
  }
  // Never: without a branch the compiler waits for the first rows before it asks for the next.
  if (p.tiles < 0) __nanosleep(1);
  // Whether another tile follows.
  const auto take = [&](Tile<Ks, Mt>& weights) {
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
    write_tile<Mt, Nt>(p, partial, tile, first_row, bias);
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

std::int64_t parts(std::int64_t items, std::int64_t each) { return (items + each - 1) / each; }

// False: a library's work.
bool plan_product(std::int64_t m, std::int64_t n, std::int64_t k, int multiprocessors, Plan& plan) {
  if (m > kMostRows || n % 4 != 0 || n > INT32_MAX - 32) return false;
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
void start(CudaContext& ctx, Job<N> job) {
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
void start(CudaContext& ctx, const Plan& plan, const Job<N>& job) {
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

bool aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; }

}  // namespace

template <class C>
bool multiply_rows(CudaContext& ctx, const Product<BFloat16, C>& p) {
  Plan plan;
  if (p.transpose_a || !p.transpose_b || p.accumulate || !aligned(p.a) || !aligned(p.b) ||
      !aligned(p.bias) || !aligned(p.c) ||
      !plan_product(p.m, p.n, p.k, ctx.multiprocessors(), plan)) {
    return false;
  }
  start(ctx, plan,
        Job<Native<C>>{.rows = static_cast<int>(p.m),
                       .outputs = static_cast<int>(p.n),
                       .tiles = 0,
                       .k = p.k,
                       .x = native(p.a),
                       .weight = native(p.b),
                       .bias = native(p.bias),
                       .relu = p.relu,
                       .out = native(p.c)});
  return true;
}

template bool multiply_rows(CudaContext& ctx, const Product<BFloat16, BFloat16>& p);
template bool multiply_rows(CudaContext& ctx, const Product<BFloat16, float>& p);

}  // namespace nunchi::kernels::cuda
