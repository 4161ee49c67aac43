// Attention of sentences whose queries and keys fit into shared memory: everything a head needs is
// copied at once, and nothing is read twice.
//
// A block has four warps and memory for 64 rows of each matrix. A head takes one warp per 16
// queries (or keys, if there are more), but four instead of three: a block takes one, two or four
// neighbouring heads of a sentence. Whether a sentence is short, and so its result, depends only on
// its own lengths.
#pragma once

#include <algorithm>
#include <cstdint>

#include "nunchi/kernels/cuda/attention/attention_backward.h"
#include "nunchi/kernels/cuda/attention/attention_common.h"
#include "nunchi/kernels/cuda/common/smem_tile.h"

namespace nunchi::kernels {

constexpr int kShortWarps = 4;
constexpr int kShortTiles = kMaxShort / kTileRows;

// Assignment of heads (key/value heads in the backward pass) to blocks.
struct ShortGrid {
  int heads = 0;
  int min_heads = 0;  // each block takes at least this many heads
  int blocks_per_sentence = 0;
  int blocks = 0;  // for all sentences; further blocks clear spare rows

  ShortGrid(std::int64_t sentences, int head_count, std::int64_t longest)
      : heads(head_count),
        min_heads(longest <= 16   ? 4
                  : longest <= 32 ? 2
                                  : 1),
        blocks_per_sentence((heads + min_heads - 1) / min_heads),
        blocks(static_cast<int>(sentences) * blocks_per_sentence) {}
};

// The work of one warp.
struct ShortWork {
  int sentence;
  int head = 0;
  int head_warp = 0;   // index among the head's warps
  int first_tile = 0;  // the head's first tile in each matrix
  bool idle = true;

  // The block's sentence; its lengths determine the rest.
  __device__ explicit ShortWork(const ShortGrid& grid)
      : sentence(static_cast<int>(blockIdx.x) / grid.blocks_per_sentence) {}
  __device__ void assign(const ShortGrid& grid, const SentenceSpan& span) {
    const int longest = max(span.queries, span.keys);
    if (longest == 0 || !span.is_short()) return;
    const int warps = longest <= 16 ? 1 : longest <= 32 ? 2 : 4, warp = threadIdx.x / kWarp;
    const int heads = kShortWarps / warps;
    const int first = static_cast<int>(blockIdx.x) % grid.blocks_per_sentence * grid.min_heads;
    head_warp = warp % warps;
    first_tile = warp - head_warp;
    head = first + warp / warps;
    // If blocks take more heads than the minimum, some blocks have none left.
    idle = first % heads != 0 || head >= grid.heads;
  }
};

// The dropout mask of a tile's 64 keys. Each lane draws eight (or sixteen) keys for two rows, and
// the four lanes of a row exchange their bits.
class ShortDropoutMask {
 public:
  // `query` is the lane's first row.
  template <class N>
  __device__ void draw(const AttentionArguments<N>& in, int sentence, int head, int query,
                       int keys) {
    if (!in.dropout.active()) return;
    const DropoutMask dropout_mask(in, sentence, head);
    const int first = static_cast<int>(threadIdx.x % 4) * 8;
    drawn_ = dropout_mask.mask8(query, first) | dropout_mask.mask8(query + 8, first) << 8;
    if (keys > 32) {
      drawn_ |= dropout_mask.mask8(query, first + 32) << 16 |
                dropout_mask.mask8(query + 8, first + 32) << 24;
    }
  }
  // Mask of the lane's elements of the eight keys from 8 * n on: bits 0 and 1 for its first row,
  // bits 8 and 9 for the second.
  __device__ std::uint32_t bits(int n) const {
    const int source_lane = static_cast<int>(threadIdx.x % kWarp & ~3u) + n % 4;
    return __shfl_sync(kAllLanes, drawn_, source_lane) >> (n / 4 * 16 + threadIdx.x % 4 * 2);
  }
  __device__ static bool kept(std::uint32_t bits, int e) {
    return (bits & (1u << (e % 2 + e / 2 * 8))) != 0;
  }

 private:
  std::uint32_t drawn_ = ~0u;
};

// Number of blocks that clear spare rows.
inline unsigned clearing_blocks(std::int64_t capacity) { return blocks_for(capacity, 256); }

// Clears columns [0, width) of the rows past the count; called by the blocks after grid.blocks.
__device__ inline void clear_spare_rows(const ShortGrid& grid, __nv_bfloat16* matrix,
                                        std::int64_t stride, int width, const Rows& rows) {
  const std::int64_t blocks = gridDim.x - grid.blocks, first = blockIdx.x - grid.blocks;
  for (std::int64_t row = real_rows(rows) + first; row < rows.capacity; row += blocks) {
    for (int d = 8 * static_cast<int>(threadIdx.x); d < width; d += 8 * kShortWarps * kWarp) {
      *reinterpret_cast<uint4*>(matrix + row * stride + d) = make_uint4(0, 0, 0, 0);
    }
  }
}

// The kernels of short sentences support heads of 32 or 64 columns that can be read eight elements
// at a time. If all sentences are short, they clear the spare rows too.
inline bool has_short_kernel(std::int64_t width) { return width == 32 || width == 64; }
void launch_short_forward(CudaContext& ctx, const ForwardArguments<__nv_bfloat16>& p,
                          std::int64_t longest);
void launch_short_backward(CudaContext& ctx, const BackwardArguments<__nv_bfloat16>& p,
                           std::int64_t longest);

}  // namespace nunchi::kernels
