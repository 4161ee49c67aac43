// A block computes a tile of some rows and outputs. It loops over K in stages of 128 elements of
// both factors, with several stages in flight; copies of the weight's first stages start before
// wait_for_previous_kernel(). Each warp computes 16 rows and 32 outputs over its slice of each
// stage's K, so that chains of dependent mma instructions are short; the slices' sums are added
// in the warps' order.
//
// If the rows are normalised first, all of K must fit into shared memory: each block normalises its
// rows there, and the first block of each tile of rows also writes the norm's results.
#include "nunchi/kernels/cuda/common/smem_tile_products.h"
#include "nunchi/kernels/cuda/product/few_rows_norm.h"
#include "nunchi/kernels/cuda/product/few_rows_product.h"

namespace nunchi::kernels {
namespace {

constexpr int kStageK = 128;  // elements of K per stage
using Tile = SmemTile<kStageK>;

using Arguments = FewRowsArguments<__nv_bfloat16>;

// Tile size, and how the warps of a block share its work.
template <int Rows, int Outputs>
struct TileConfig {
  static constexpr int kWarps = Rows * Outputs == 64 * 64 ? 16 : 8, kThreads = kWarps * kWarp;
  static constexpr int kRowTiles = Rows / kTileRows, kOutputTiles = Outputs / kTileRows;
  static constexpr int kStageBytes = (kRowTiles + kOutputTiles) * Tile::kBytes;
  // Each warp computes 32 outputs over a slice of each stage's K, 16 elements per mma step.
  static constexpr int kWarpsAlongOutputs = Outputs / 32;
  static constexpr int kWarpsAlongK = kWarps / kRowTiles / kWarpsAlongOutputs;
  static constexpr int kMmaSteps = kStageK / 16 / kWarpsAlongK;
  // Row stride of the partial sums, padded against bank conflicts.
  static constexpr int kSumStride = Outputs + 8;
  static constexpr int kSumBytes = kWarpsAlongK * Rows * kSumStride * 4;
  static_assert(kWarpsAlongK * kRowTiles * kWarpsAlongOutputs == kWarps &&
                kWarpsAlongK * kMmaSteps * 16 == kStageK);
};

// Starts the block's copies of one stage of `Count` rows or outputs, from `first` on. Rows past
// `row_count` repeat the last one; their results are not written.
template <int Count, int Threads>
__device__ void copy_stage(const Tile& to, const __nv_bfloat16* from, std::int64_t stride,
                           int first, int row_count) {
  const int chunk = threadIdx.x % Tile::kChunks, row = threadIdx.x / Tile::kChunks;
  constexpr int kRowsPerPass = Threads / Tile::kChunks;
  static_assert(kRowsPerPass % 8 == 0);  // the swizzle repeats after eight rows
#pragma unroll
  for (int i = 0; i < Count; i += kRowsPerPass) {
    if (Count % kRowsPerPass != 0 && i + row >= Count) continue;
    copy_async16(to.address + Tile::offset_of(i + row, chunk),
                 row_at(from + 8 * chunk, stride, min(first + i + row, row_count - 1)), true);
  }
}

// Normalises the block's rows in shared memory, which holds all of their stages. Each warp
// normalises several rows at a time.
template <int Rows, int Outputs, int Chunks>
__device__ void normalise_tile(const ResidualNorm<__nv_bfloat16>& n,
                               const NormParameters<Chunks>& parameters, char* memory,
                               int first_row, int rows) {
  using Config = TileConfig<Rows, Outputs>;
  constexpr int kWarps = Config::kWarps, kRowsPerWarp = Rows / kWarps,
                kRowsPerPass = kRowsPerWarp < 8 / Chunks ? kRowsPerWarp : 8 / Chunks;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const FloatNormParameters<Chunks> float_parameters(parameters);
  // A lane's columns of each 256 are in the first or second of two stages; the warp's rows are a
  // multiple of eight apart, so their swizzle is the same.
  static_assert(kWarps % 8 == 0);
  char* lane_memory = memory + lane / Tile::kChunks * Config::kStageBytes +
                      Tile::offset_of(warp, lane % Tile::kChunks);
  const auto chunk_at = [&](int i, int c) {
    return reinterpret_cast<uint4*>(lane_memory + 2 * c * Config::kStageBytes +
                                    i * kWarps * Tile::kRowBytes);
  };
  const bool writes = blockIdx.x == 0;
#pragma unroll
  for (int first = 0; first < kRowsPerWarp; first += kRowsPerPass) {
    float x[kRowsPerPass][Chunks][8];
    std::int64_t row[kRowsPerPass];
#pragma unroll
    for (int i = 0; i < kRowsPerPass; ++i) {
      // Rows past the end repeat the last row; duplicate writes are benign.
      row[i] = min(first_row + warp + (first + i) * kWarps, rows - 1);
#pragma unroll
      for (int c = 0; c < Chunks; ++c) unpack(*chunk_at(first + i, c), x[i][c]);
    }
    normalise<Chunks, kRowsPerPass>(
        n, float_parameters, row, writes, x, [&](int i, int c, const float(&y)[8]) {
          *chunk_at(first + i, c) = make_uint4(packed(y[0], y[1]), packed(y[2], y[3]),
                                               packed(y[4], y[5]), packed(y[6], y[7]));
        });
  }
}

// Chunks: 256-column chunks per normalised row; 0 without normalisation. Ring: the stages are a
// ring buffer, since K has more stages than fit into shared memory.
template <int Rows, int Outputs, int Stages, int Chunks, bool Ring>
__global__ void __launch_bounds__(TileConfig<Rows, Outputs>::kThreads)
    medium_rows_kernel(const Arguments p, const ResidualNorm<__nv_bfloat16> n) {
  using Config = TileConfig<Rows, Outputs>;
  extern __shared__ __align__(LaneTiles<kStageK>::kAlignment) char memory[];
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int first_row = static_cast<int>(blockIdx.y) * Rows, tile = static_cast<int>(blockIdx.x);
  const int stages = static_cast<int>(p.k / kStageK);
  const std::uint32_t base = shared_address(memory);
  const auto stage_tile = [&](int stage) {
    return Tile{base + static_cast<std::uint32_t>(stage % Stages * Config::kStageBytes)};
  };
  const auto copy_weight = [&](int stage) {
    copy_stage<Outputs, Config::kThreads>(stage_tile(stage).tile(Config::kRowTiles),
                                          p.weight + stage * kStageK, p.k, tile * Outputs,
                                          p.outputs);
  };
  const auto copy_rows = [&](int stage) {
    copy_stage<Rows, Config::kThreads>(stage_tile(stage), p.x + stage * kStageK, p.k, first_row,
                                       p.rows);
  };
#pragma unroll
  for (int stage = 0; stage < Stages; ++stage) {
    if (stage < stages) copy_weight(stage);
  }
  commit_copies();
  uint2 bias = make_uint2(0, 0);
  const int output = tile * Outputs + static_cast<int>(threadIdx.x) % (Outputs / 4) * 4;
  if (p.bias != nullptr && output < p.outputs) {
    bias = *reinterpret_cast<const uint2*>(p.bias + output);
  }
  NormParameters<Chunks == 0 ? 1 : Chunks> parameters;
  if constexpr (Chunks > 0) parameters.load(n);
  wait_for_previous_kernel();
#pragma unroll
  for (int stage = 0; stage < Stages; ++stage) {
    if (stage < stages) copy_rows(stage);
    if (!Ring || stage % 2 == 1) commit_copies();
  }
  const uint2 residual = prefetch_residual<Outputs>(p, tile, first_row);

  const int row_tile = warp % Config::kRowTiles,
            output_slice = warp / Config::kRowTiles % Config::kWarpsAlongOutputs,
            k_slice = warp / Config::kRowTiles / Config::kWarpsAlongOutputs;
  float sums[4][4] = {};
  const auto x = LaneTiles<kStageK>(Tile{base}.tile(row_tile))
                     .from_block(k_slice * Config::kMmaSteps),
             weight = LaneTiles<kStageK>::for_b_fragments(
                          Tile{base}.tile(Config::kRowTiles + 2 * output_slice))
                          .from_block(k_slice * Config::kMmaSteps);
  const auto multiply = [&](int stage) {
    const int tile_offset = stage % Stages * (Config::kStageBytes / Tile::kBytes);
#pragma unroll
    for (int i = 0; i < Config::kMmaSteps; ++i) {
      std::uint32_t a[4], b[4];
      load_block(a, x.from_tile(tile_offset).block(i));
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        load_block(b, weight.from_tile(tile_offset).tile(t).block(i));
        mma(sums[2 * t], a, b[0], b[1]);
        mma(sums[2 * t + 1], a, b[2], b[3]);
      }
    }
  };
  if constexpr (Chunks > 0) {
    wait_for_copy_groups<0>();
    __syncthreads();
    normalise_tile<Rows, Outputs, Chunks>(n, parameters, memory, first_row, p.rows);
    __syncthreads();
#pragma unroll
    for (int stage = 0; stage < 2 * Chunks; ++stage) multiply(stage);
  } else if constexpr (Ring) {
    // Two stages at a time, to halve the number of barriers.
    static_assert(Stages % 2 == 0);
    for (int stage = 0; stage < stages; stage += 2) {
      // Up to Stages / 2 - 2 groups were committed after the group of this pair of stages.
      wait_for_copy_groups<Stages / 2 - 2>();
      __syncthreads();
      // All warps have finished the previous pair: its memory is free for new stages.
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int next = stage - 2 + i + Stages;
        if (stage == 0 || next >= stages) continue;
        copy_weight(next);
        copy_rows(next);
      }
      commit_copies();
      multiply(stage);
      if (stage + 1 < stages) multiply(stage + 1);
    }
  } else {
#pragma unroll
    for (int stage = 0; stage < Stages; ++stage) {
      if (stage == 0) wait_for_copy_groups<Stages - 1>();
      if (stage == 1) wait_for_copy_groups<Stages - 2>();
      if (stage == 2) wait_for_copy_groups<Stages - 3>();
      if (stage == 3) wait_for_copy_groups<Stages - 4>();
      __syncthreads();
      if (stage < stages) multiply(stage);
    }
  }
  __syncthreads();

  auto* partial = reinterpret_cast<float*>(memory);  // [kWarpsAlongK, Rows, kSumStride]
  float* to = partial + (k_slice * Rows + row_tile * kTileRows + lane / 4) * Config::kSumStride +
              output_slice * 32 + lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    *reinterpret_cast<float2*>(to + 8 * j) = make_float2(sums[j][0], sums[j][1]);
    *reinterpret_cast<float2*>(to + 8 * Config::kSumStride + 8 * j) =
        make_float2(sums[j][2], sums[j][3]);
  }
  __syncthreads();
  write_tile<Outputs, Config::kSumStride>(
      p, partial,
      {.tile = tile, .first_row = first_row, .rows = Rows, .parts = Config::kWarpsAlongK}, bias,
      residual);
}

template <int Rows, int Outputs, int Stages, int Chunks, bool Ring>
bool launch(CudaContext& ctx, const Arguments& arguments, const ResidualNorm<__nv_bfloat16>& norm) {
  using Config = TileConfig<Rows, Outputs>;
  constexpr auto kernel = medium_rows_kernel<Rows, Outputs, Stages, Chunks, Ring>;
  constexpr int kBytes = Stages * Config::kStageBytes;
  static_assert(Config::kSumBytes <= kBytes && kBytes <= 227 << 10);
  allow_shared_memory(kernel, kBytes);
  launch_overlapped(
      ctx, "tile_product", kernel,
      {.blocks = dim3(blocks_for(arguments.outputs, Outputs), blocks_for(arguments.rows, Rows)),
       .threads = Config::kThreads,
       .shared = kBytes},
      arguments, norm);
  return true;
}

// Calls f with the smallest tile size with which all blocks run at once: a block's time is
// dominated by loading its rows. Returns false if cuBLASLt should compute the product.
template <class F>
bool dispatch_tile_size(CudaContext& ctx, const Arguments& arguments, F&& f) {
  const auto one_wave = [&](std::int64_t rows, std::int64_t outputs) {
    return div_ceil(arguments.rows, rows) * div_ceil(arguments.outputs, outputs) <=
           ctx.multiprocessors();
  };
  if (one_wave(16, 32)) return f.template operator()<16, 32>();
  if (one_wave(32, 32)) return f.template operator()<32, 32>();
  if (one_wave(32, 64)) return f.template operator()<32, 64>();
  if (one_wave(64, 64)) return f.template operator()<64, 64>();
  return false;
}

constexpr std::int64_t kMaxMediumRows = 1024;

bool suits_medium_rows(const CudaContext& ctx, const Product<BFloat16>& p) {
  return !ctx.deterministic() && suits_few_rows(p) && p.m <= kMaxMediumRows && p.n < 1 << 24 &&
         p.k % kStageK == 0 && p.k > 0;
}

}  // namespace

bool try_medium_rows_product(CudaContext& ctx, const Product<BFloat16>& p) {
  if (!suits_medium_rows(ctx, p)) return false;
  const Arguments arguments = few_rows_arguments(p);
  return dispatch_tile_size(ctx, arguments, [&]<int Rows, int Outputs>() {
    return p.k <= 4 * kStageK ? launch<Rows, Outputs, 4, 0, false>(ctx, arguments, {})
                              : launch<Rows, Outputs, 6, 0, true>(ctx, arguments, {});
  });
}

bool try_medium_rows_product(CudaContext& ctx, const NormProduct<BFloat16>& p) {
  // Not with a residual branch, which would have to be copied in addition to the rows.
  if (!suits_medium_rows(ctx, p.product) || !can_fuse_norm(p.norm) || p.norm.branch != nullptr)
    return false;
  Arguments arguments = few_rows_arguments(p.product);
  const ResidualNorm<__nv_bfloat16> norm = native(p.norm);
  arguments.x = norm.residual;
  return dispatch_tile_size(ctx, arguments, [&]<int Rows, int Outputs>() {
    if (arguments.k == 256) return launch<Rows, Outputs, 2, 1, false>(ctx, arguments, norm);
    if (arguments.k == 512) return launch<Rows, Outputs, 4, 2, false>(ctx, arguments, norm);
    if constexpr (Rows + Outputs <= 96)
      return launch<Rows, Outputs, 8, 4, false>(ctx, arguments, norm);
    return false;
  });
}

}  // namespace nunchi::kernels
