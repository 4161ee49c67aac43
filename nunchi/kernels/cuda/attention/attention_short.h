// Attention where a sentence's queries and keys fit into shared memory: all that a head needs is
// on its way at once, and nothing is read twice.
//
// A block is four warps and has room for 64 rows of each matrix. A head takes one warp for each 16
// queries (or keys, if they are more), where three warps count as four: a block takes one, two or
// four neighbouring heads of a sentence. Whether a sentence is short depends on nothing else, so
// that neither does its result.
#pragma once

#include <algorithm>
#include <cstdint>

#include "nunchi/kernels/cuda/attention/attention_gradient.h"
#include "nunchi/kernels/cuda/attention/attention_heads.h"
#include "nunchi/kernels/cuda/product/shared_tile.h"

namespace nunchi::kernels {

constexpr int kShortWarps = 4;
constexpr int kShortTiles = kShort / kTileRows;

// Heads (of keys, on the way back) on blocks.
struct ShortGrid {
  int heads = 0;
  int together = 0;  // heads that a block takes at least
  int each = 0;      // blocks for a sentence
  int blocks = 0;    // for all sentences; those behind them clear spare rows

  ShortGrid(std::int64_t sentences, int head_count, std::int64_t longest)
      : heads(head_count),
        together(longest <= 16   ? 4
                 : longest <= 32 ? 2
                                 : 1),
        each((heads + together - 1) / together),
        blocks(static_cast<int>(sentences) * each) {}
};

// What a warp does.
struct ShortPlace {
  int sentence;
  int head = 0;
  int part = 0;        // of the head's warps
  int first_tile = 0;  // of the head's, in each matrix
  bool idle = true;

  // The sentence that the block is for; the rest follows from its lengths.
  __device__ explicit ShortPlace(const ShortGrid& grid)
      : sentence(static_cast<int>(blockIdx.x) / grid.each) {}
  __device__ void settle(const ShortGrid& grid, const Span& span) {
    const int longest = max(span.queries, span.keys);
    if (longest == 0 || !span.is_short()) return;
    const int warps = longest <= 16 ? 1 : longest <= 32 ? 2 : 4, warp = threadIdx.x / kWarp;
    const int heads = kShortWarps / warps;
    const int first = static_cast<int>(blockIdx.x) % grid.each * grid.together;
    part = warp % warps;
    first_tile = warp - part;
    head = first + warp / warps;
    // Where a block takes more heads than it must, some blocks have none left.
    idle = first % heads != 0 || head >= grid.heads;
  }
};

// Which of a tile's 64 keys stay. Each lane draws for eight (or sixteen) keys and two rows, and the
// four lanes of a row show each other.
class ShortKeep {
 public:
  // `query` is the lane's first row.
  template <class N>
  __device__ void draw(const Heads<N>& in, int sentence, int head, int query, int keys) {
    if (in.draws.threshold == 0) return;
    const KeepBits keep(in, sentence, head);
    const int first = static_cast<int>(threadIdx.x % 4) * 8;
    own_ = keep.of(query, first) | keep.of(query + 8, first) << 8;
    if (keys > 32) {
      own_ |= keep.of(query, first + 32) << 16 | keep.of(query + 8, first + 32) << 24;
    }
  }
  // Of the lane's elements of the eight keys from 8 * n on: bits 0 and 1 of its first row, bits 8
  // and 9 of the other.
  __device__ std::uint32_t bits(int n) const {
    const int from = static_cast<int>(threadIdx.x % kWarp & ~3u) + n % 4;
    return __shfl_sync(kAllLanes, own_, from) >> (n / 4 * 16 + threadIdx.x % 4 * 2);
  }
  __device__ static bool kept(std::uint32_t bits, int e) {
    return (bits & (1u << (e % 2 + e / 2 * 8))) != 0;
  }

 private:
  std::uint32_t own_ = ~0u;
};

// Blocks that look for spare rows.
inline unsigned clearing_blocks(std::int64_t capacity) { return blocks_for(capacity, 256); }

// Zeros in columns [0, width) of the rows behind the real ones, by the blocks behind the grid's.
__device__ inline void clear_spare_rows(const ShortGrid& grid, __nv_bfloat16* matrix,
                                        std::int64_t stride, int width, const Rows& rows) {
  const std::int64_t blocks = gridDim.x - grid.blocks, first = blockIdx.x - grid.blocks;
  for (std::int64_t row = real_rows(rows) + first; row < rows.capacity; row += blocks) {
    for (int d = 8 * static_cast<int>(threadIdx.x); d < width; d += 8 * kShortWarps * kWarp) {
      *reinterpret_cast<uint4*>(matrix + row * stride + d) = make_uint4(0, 0, 0, 0);
    }
  }
}

// Both start kernels for heads of 32 or 64 columns that can be read eight elements at a time. Where
// all sentences are short, they clear the spare rows too.
inline bool short_width(std::int64_t width) { return width == 32 || width == 64; }
void start_short_forward(CudaContext& ctx, const Forward<__nv_bfloat16>& p, std::int64_t longest);
void start_short_backward(CudaContext& ctx, const Backward<__nv_bfloat16>& p, std::int64_t longest);

}  // namespace nunchi::kernels
