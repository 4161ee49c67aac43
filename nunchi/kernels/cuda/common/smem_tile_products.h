// Products of M tiles at once: each block that a warp loads of the other factor is used for all M.
#pragma once

#include "nunchi/kernels/cuda/common/smem_tile.h"

namespace nunchi::kernels {

// Tiles as addressed by one lane. If the memory is aligned to kAlignment, a block's column affects
// only three bits of the address, so that tiles at constant distances need no address arithmetic.
template <int Width>
struct LaneTiles {
  static constexpr int kAlignment = 256;

  std::uint32_t address;  // address of the lane's row of block 0
  std::uint32_t offset = 0;

  __device__ explicit LaneTiles(const SmemTile<Width>& tiles) : address(tiles.block(0)) {}
  // With the middle two matrices of a block exchanged: as B of products over columns, word[0],
  // word[1] belong to its first eight rows and word[2], word[3] to the others. mma wants such pairs
  // in neighbouring registers.
  __device__ static LaneTiles for_b_fragments(const SmemTile<Width>& tiles) {
    const int lane = lane_of_thread();
    return {tiles.address + SmemTile<Width>::offset_of(lane / 16 * 8 + lane % 8, lane / 8 % 2), 0};
  }
  __device__ LaneTiles(std::uint32_t row_address, std::uint32_t tile_offset)
      : address(row_address), offset(tile_offset) {}

  __device__ std::uint32_t block(int i) const {
    return (address ^ static_cast<std::uint32_t>(32 * i)) + offset;
  }
  // The tiles with block `first` as block 0; `first` is a power of two larger than any index that
  // is used afterwards.
  __device__ LaneTiles from_block(int first) const {
    return {address ^ static_cast<std::uint32_t>(32 * first), offset};
  }
  // Tile n, a compile-time constant.
  __device__ LaneTiles tile(int n) const {
    return {address, offset + static_cast<std::uint32_t>(n * SmemTile<Width>::kBytes)};
  }
  // The tiles with tile `first` as tile 0; `first` is known only at run time.
  __device__ LaneTiles from_tile(int first) const {
    return {address + static_cast<std::uint32_t>(first * SmemTile<Width>::kBytes), offset};
  }
};

// Block i of M consecutive tiles.
template <int Width, int M>
__device__ void load_blocks(std::uint32_t (&words)[M][4], const LaneTiles<Width>& tiles, int i) {
#pragma unroll
  for (int m = 0; m < M; ++m) load_block(words[m], tiles.tile(m).block(i));
}

// The part of sums = a bᵀ over the columns of block i: block 0 sets the sums, the other blocks add
// to them. b are N / 2 consecutive tiles from for_b_fragments(); each gives two of the N groups of
// eight columns.
template <int Width, int M, int N>
__device__ void multiply_transposed_block(float (&sums)[M][N][4], const std::uint32_t (&a)[M][4],
                                          const LaneTiles<Width>& b, int i) {
#pragma unroll
  for (int n = 0; n < N; n += 2) {
    std::uint32_t words[4];
    load_block(words, b.tile(n / 2).block(i));
#pragma unroll
    for (int m = 0; m < M; ++m) {
      if (i == 0) {
        first_mma(sums[m][n], a[m], words[0], words[1]);
        first_mma(sums[m][n + 1], a[m], words[2], words[3]);
      } else {
        mma(sums[m][n], a[m], words[0], words[1]);
        mma(sums[m][n + 1], a[m], words[2], words[3]);
      }
    }
  }
}

// sums += x b for 16 columns of x, from 8 n on, and a tile b of 16 rows.
template <int Width, int M, int N>
__device__ void add_product(float (&sums)[M][Width / 8][4], const float (&x)[M][N][4], int n,
                            const LaneTiles<Width>& b) {
  std::uint32_t a[M][4];
#pragma unroll
  for (int m = 0; m < M; ++m) to_a(a[m], x[m][n], x[m][n + 1]);
#pragma unroll
  for (int i = 0; i < Width / 16; ++i) {
    std::uint32_t words[4];
    load_block_transposed(words, b.block(i));
#pragma unroll
    for (int m = 0; m < M; ++m) {
      mma(sums[m][2 * i], a[m], words[0], words[1]);
      mma(sums[m][2 * i + 1], a[m], words[2], words[3]);
    }
  }
}

}  // namespace nunchi::kernels
