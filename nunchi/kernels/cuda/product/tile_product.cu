// A block owns a tile of outputs of some rows. K goes by in stages of 128 elements of both, several
// of them on their way at once; the weight's first stages are fetched before begin(). Each warp
// takes 16 rows, 32 outputs and its share of each stage's K, so that no chain of products is long,
// and the shares are added in the warps' order.
//
// Where the rows are normalised first, all of K is in shared memory: each block normalises its rows
// there, and the first block of each tile of rows also writes what a normalisation writes.
#include "nunchi/kernels/cuda/product/row_norm.h"
#include "nunchi/kernels/cuda/product/row_product.h"
#include "nunchi/kernels/cuda/product/stacked_tiles.h"

namespace nunchi::kernels {
namespace {

constexpr int kStage = 128;  // elements of K
using Tile = SharedTile<kStage>;

using Job = RowJob<__nv_bfloat16>;

template <int Rows, int Outputs>
struct Shape {
  static constexpr int kWarps = Rows * Outputs == 64 * 64 ? 16 : 8, kThreads = kWarps * kWarp;
  static constexpr int kRowTiles = Rows / kTileRows, kOutputTiles = Outputs / kTileRows;
  static constexpr int kStageBytes = (kRowTiles + kOutputTiles) * Tile::kBytes;
  static constexpr int kAcross = Outputs / 32;                  // warps side by side over outputs
  static constexpr int kShares = kWarps / kRowTiles / kAcross;  // of a stage's K
  static constexpr int kSteps = kStage / 16 / kShares;          // of a share, 16 elements each
  static constexpr int kColumns = Outputs + 8;  // of a row of sums: rows in other banks
  static constexpr int kSumBytes = kShares * Rows * kColumns * 4;
  static_assert(kShares * kRowTiles * kAcross == kWarps && kShares * kSteps * 16 == kStage);
};

// The copies of one stage of rows or outputs begin, by the block: rows from `first` on, the last
// one again past the last; what comes of that is not written.
template <int Count, int Threads>
__device__ void fetch(const Tile& to, const __nv_bfloat16* from, std::int64_t stride, int first,
                      int all) {
  const int chunk = threadIdx.x % Tile::kChunks, row = threadIdx.x / Tile::kChunks;
  constexpr int kTogether = Threads / Tile::kChunks;
  static_assert(kTogether % 8 == 0);  // places in a row repeat after eight
#pragma unroll
  for (int i = 0; i < Count; i += kTogether) {
    if (Count % kTogether != 0 && i + row >= Count) continue;
    copy16(to.address + Tile::place(i + row, chunk),
           row_at(from + 8 * chunk, stride, min(first + i + row, all - 1)), true);
  }
}

// The block's rows, all of whose stages lie in shared memory, normalised in place, a warp several
// at once.
template <int Rows, int Outputs, int Chunks>
__device__ void normalise_tile(const ResidualNorm<__nv_bfloat16>& n,
                               const NormParameters<Chunks>& parameters, char* memory,
                               int first_row, int rows) {
  using Of = Shape<Rows, Outputs>;
  constexpr int kWarps = Of::kWarps, kEach = Rows / kWarps,
                kAtOnce = kEach < 8 / Chunks ? kEach : 8 / Chunks;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const NormFactors<Chunks> factors(parameters);
  // A lane's columns of each 256 stand in the first or second of two stages; of the rows that are
  // the warp's, a multiple of eight apart, at the same place in a row.
  static_assert(kWarps % 8 == 0);
  char* own =
      memory + lane / Tile::kChunks * Of::kStageBytes + Tile::place(warp, lane % Tile::kChunks);
  const auto at = [&](int i, int c) {
    return reinterpret_cast<uint4*>(own + 2 * c * Of::kStageBytes + i * kWarps * Tile::kRowBytes);
  };
  const bool writes = blockIdx.x == 0;
#pragma unroll
  for (int first = 0; first < kEach; first += kAtOnce) {
    float x[kAtOnce][Chunks][8];
    std::int64_t row[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      // Past the last row its copies are, and write the same.
      row[i] = min(first_row + warp + (first + i) * kWarps, rows - 1);
#pragma unroll
      for (int c = 0; c < Chunks; ++c) unpack(*at(first + i, c), x[i][c]);
    }
    normalise<Chunks, kAtOnce>(n, factors, row, writes, x, [&](int i, int c, const float(&y)[8]) {
      *at(first + i, c) = make_uint4(packed(y[0], y[1]), packed(y[2], y[3]), packed(y[4], y[5]),
                                     packed(y[6], y[7]));
    });
  }
}

// Chunks: of a row that is normalised, 0 for one that is not. Ring: K has more stages than there is
// room for.
template <int Rows, int Outputs, int Stages, int Chunks, bool Ring>
__global__ void __launch_bounds__(Shape<Rows, Outputs>::kThreads)
    tile_product_kernel(const Job p, const ResidualNorm<__nv_bfloat16> n) {
  using Of = Shape<Rows, Outputs>;
  extern __shared__ __align__(LaneTiles<kStage>::kAligned) char memory[];
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int first_row = static_cast<int>(blockIdx.y) * Rows, tile = static_cast<int>(blockIdx.x);
  const int stages = static_cast<int>(p.k / kStage);
  const std::uint32_t base = shared_address(memory);
  const auto place = [&](int stage) {
    return Tile{base + static_cast<std::uint32_t>(stage % Stages * Of::kStageBytes)};
  };
  const auto fetch_weight = [&](int stage) {
    fetch<Outputs, Of::kThreads>(place(stage).next(Of::kRowTiles), p.weight + stage * kStage, p.k,
                                 tile * Outputs, p.outputs);
  };
  const auto fetch_rows = [&](int stage) {
    fetch<Rows, Of::kThreads>(place(stage), p.x + stage * kStage, p.k, first_row, p.rows);
  };
#pragma unroll
  for (int stage = 0; stage < Stages; ++stage) {
    if (stage < stages) fetch_weight(stage);
  }
  group_copies();
  uint2 bias = make_uint2(0, 0);
  const int output = tile * Outputs + static_cast<int>(threadIdx.x) % (Outputs / 4) * 4;
  if (p.bias != nullptr && output < p.outputs) {
    bias = *reinterpret_cast<const uint2*>(p.bias + output);
  }
  NormParameters<Chunks == 0 ? 1 : Chunks> parameters;
  if constexpr (Chunks > 0) parameters.load(n);
  begin();
#pragma unroll
  for (int stage = 0; stage < Stages; ++stage) {
    if (stage < stages) fetch_rows(stage);
    if (!Ring || stage % 2 == 1) group_copies();
  }
  const uint2 added = first_added<Outputs>(p, tile, first_row);

  const int row_tile = warp % Of::kRowTiles, across = warp / Of::kRowTiles % Of::kAcross,
            share = warp / Of::kRowTiles / Of::kAcross;
  float sums[4][4] = {};
  const auto x = LaneTiles<kStage>(Tile{base}.next(row_tile)).shifted(share * Of::kSteps),
             weight = LaneTiles<kStage>::paired(Tile{base}.next(Of::kRowTiles + 2 * across))
                          .shifted(share * Of::kSteps);
  const auto multiply = [&](int stage) {
    const int tiles = stage % Stages * (Of::kStageBytes / Tile::kBytes);
#pragma unroll
    for (int i = 0; i < Of::kSteps; ++i) {
      std::uint32_t a[4], b[4];
      load_block(a, x.moved(tiles).block(i));
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        load_block(b, weight.moved(tiles).next(t).block(i));
        mma(sums[2 * t], a, b[0], b[1]);
        mma(sums[2 * t + 1], a, b[2], b[3]);
      }
    }
  };
  if constexpr (Chunks > 0) {
    wait_for_groups<0>();
    __syncthreads();
    normalise_tile<Rows, Outputs, Chunks>(n, parameters, memory, first_row, p.rows);
    __syncthreads();
#pragma unroll
    for (int stage = 0; stage < 2 * Chunks; ++stage) multiply(stage);
  } else if constexpr (Ring) {
    // Two stages at a time, so that warps meet half as often.
    static_assert(Stages % 2 == 0);
    for (int stage = 0; stage < stages; stage += 2) {
      // Of the groups since that of these, one came after each two before them.
      wait_for_groups<Stages / 2 - 2>();
      __syncthreads();
      // All have done with the two before: others take their places.
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int next = stage - 2 + i + Stages;
        if (stage == 0 || next >= stages) continue;
        fetch_weight(next);
        fetch_rows(next);
      }
      group_copies();
      multiply(stage);
      if (stage + 1 < stages) multiply(stage + 1);
    }
  } else {
#pragma unroll
    for (int stage = 0; stage < Stages; ++stage) {
      if (stage == 0) wait_for_groups<Stages - 1>();
      if (stage == 1) wait_for_groups<Stages - 2>();
      if (stage == 2) wait_for_groups<Stages - 3>();
      if (stage == 3) wait_for_groups<Stages - 4>();
      __syncthreads();
      if (stage < stages) multiply(stage);
    }
  }
  __syncthreads();

  auto* partial = reinterpret_cast<float*>(memory);  // [kShares, Rows, kColumns]
  float* to = partial + (share * Rows + row_tile * kTileRows + lane / 4) * Of::kColumns +
              across * 32 + lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    *reinterpret_cast<float2*>(to + 8 * j) = make_float2(sums[j][0], sums[j][1]);
    *reinterpret_cast<float2*>(to + 8 * Of::kColumns + 8 * j) = make_float2(sums[j][2], sums[j][3]);
  }
  __syncthreads();
  write_tile<Outputs, Of::kColumns>(p, partial, {tile, first_row, Rows, Of::kShares}, bias, added);
}

template <int Rows, int Outputs, int Stages, int Chunks, bool Ring>
bool start(CudaContext& ctx, const Job& job, const ResidualNorm<__nv_bfloat16>& norm) {
  using Of = Shape<Rows, Outputs>;
  constexpr auto kernel = tile_product_kernel<Rows, Outputs, Stages, Chunks, Ring>;
  constexpr int kBytes = Stages * Of::kStageBytes;
  static_assert(Of::kSumBytes <= kBytes && kBytes <= 227 << 10);
  allow_shared_memory(kernel, kBytes);
  start_early(ctx, "tile_product", kernel,
              {.blocks = dim3(blocks_for(job.outputs, Outputs), blocks_for(job.rows, Rows)),
               .threads = Of::kThreads,
               .shared = kBytes},
              job, norm);
  return true;
}

// The smallest tiles of which all run at once: what a block waits for is its own rows' way from
// memory. False: a library's work.
template <class F>
bool with_tiles(CudaContext& ctx, const Job& job, F&& f) {
  const auto fits = [&](std::int64_t rows, std::int64_t outputs) {
    return parts(job.rows, rows) * parts(job.outputs, outputs) <= ctx.multiprocessors();
  };
  if (fits(16, 32)) return f.template operator()<16, 32>();
  if (fits(32, 32)) return f.template operator()<32, 32>();
  if (fits(32, 64)) return f.template operator()<32, 64>();
  if (fits(64, 64)) return f.template operator()<64, 64>();
  return false;
}

constexpr std::int64_t kMostTileRows = 1024;

bool fits(const CudaContext& ctx, const Product<BFloat16>& p) {
  return !ctx.deterministic() && is_row_product(p) && p.m <= kMostTileRows && p.n < 1 << 24 &&
         p.k % kStage == 0 && p.k > 0;
}

}  // namespace

bool multiply_tiles(CudaContext& ctx, const Product<BFloat16>& p) {
  if (!fits(ctx, p)) return false;
  const Job job = row_job(p);
  return with_tiles(ctx, job, [&]<int Rows, int Outputs>() {
    return p.k <= 4 * kStage ? start<Rows, Outputs, 4, 0, false>(ctx, job, {})
                             : start<Rows, Outputs, 6, 0, true>(ctx, job, {});
  });
}

bool multiply_tiles(CudaContext& ctx, const NormProduct<BFloat16>& p) {
  // A branch would have to be fetched beside the rows.
  if (!fits(ctx, p.product) || !can_be_shared(p.norm) || p.norm.branch != nullptr) return false;
  Job job = row_job(p.product);
  const ResidualNorm<__nv_bfloat16> norm = native(p.norm);
  job.x = norm.residual;
  return with_tiles(ctx, job, [&]<int Rows, int Outputs>() {
    if (job.k == 256) return start<Rows, Outputs, 2, 1, false>(ctx, job, norm);
    if (job.k == 512) return start<Rows, Outputs, 4, 2, false>(ctx, job, norm);
    if constexpr (Rows + Outputs <= 96) return start<Rows, Outputs, 8, 4, false>(ctx, job, norm);
    return false;
  });
}

}  // namespace nunchi::kernels
