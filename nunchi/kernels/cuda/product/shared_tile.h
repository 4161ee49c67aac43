// Rows of bf16 in shared memory, as the tensor cores take them.
//
// A tile is 16 rows, and what one instruction moves for a warp is a block of it, 16 x 16 elements
// in four 8 x 8 matrices: (rows 0-7, columns 0-7), (8-15, 0-7), (0-7, 8-15), (8-15, 8-15). In the
// terms of mma.h, and read as it lies, word[0..3] of a block are
//   A of a product over its columns,
//   B of two such products: word[0], word[2] for its first eight rows, word[1], word[3] for the
//   others;
// read transposed they are
//   B of two products over its rows: word[0], word[1] for its first eight columns, word[2], word[3]
//   for the others,
//   A over its rows, with word[1] and word[2] exchanged.
// Eight neighbouring elements, 16 bytes, stay together; which place they take in their row depends
// on the row, so that neither eight rows of a matrix nor a whole row meet in a bank.
#pragma once

#include "nunchi/kernels/cuda/common/mma.h"

namespace nunchi::kernels {

constexpr int kTileRows = 16;

// Shared memory is addressed by 32 bits.
__device__ inline std::uint32_t shared_address(const void* memory) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(memory));
}

// 16 bytes on their way while the thread goes on; zeros where they are not `real`, and `from` is
// anything.
__device__ inline void copy16(std::uint32_t to, const void* from, bool real) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(real ? 16 : 0)
               : "memory");
}
// The same of 8 bytes.
__device__ inline void copy8(std::uint32_t to, const void* from, bool real) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from),
               "r"(real ? 8 : 0)
               : "memory");
}
// The thread's copies since the last time are a group, even if there were none.
__device__ inline void group_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits for the thread's own groups, all but the latest ones.
template <int Latest>
__device__ void wait_for_groups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Latest) : "memory");
}
// Waits for the thread's own copies.
__device__ inline void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

__device__ inline void load_block(std::uint32_t (&word)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
               : "r"(address)
               : "memory");
}
__device__ inline void load_block_transposed(std::uint32_t (&word)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
               : "r"(address)
               : "memory");
}
__device__ inline void store_block(std::uint32_t address, const std::uint32_t (&word)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(word[0]), "r"(word[1]), "r"(word[2]), "r"(word[3])
               : "memory");
}
__device__ inline uint4 load_shared16(std::uint32_t address) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(address)
               : "memory");
  return x;
}

// The first `count` of 16 rows, where they are written or added to.
struct RowsOut {
  __nv_bfloat16* first;
  std::int64_t stride;
  int count;
  bool accumulate = false;
};

// A tile by its first byte, a multiple of 16.
template <int Width>
struct SharedTile {
  static constexpr int kRowBytes = 2 * Width, kBytes = kTileRows * kRowBytes;
  static constexpr int kChunks = Width / 8;                   // of a row
  static constexpr int kTogether = kWarp / kChunks;           // rows that a warp moves at once
  static constexpr int kMoves = kTileRows * kChunks / kWarp;  // until the tile is through

  std::uint32_t address;

  __device__ static std::uint32_t place(int row, int chunk) {
    const int fold = Width == 32 ? row / 2 % 4 : row % 8;
    return static_cast<std::uint32_t>(row * kRowBytes + (chunk ^ fold) * 16);
  }
  // Where this lane's row of the block from column 16 * i on begins.
  __device__ std::uint32_t block(int i) const {
    const int lane = threadIdx.x % kWarp;
    return address + (place(lane % 16, lane / 16) ^ static_cast<std::uint32_t>(32 * i));
  }
  __device__ SharedTile next(int tiles) const {
    return {address + static_cast<std::uint32_t>(tiles * kBytes)};
  }

  // The warp's copies of `count` rows (at most 16 of them) begin; zeros behind them. Something is
  // at `rows` even if the count is not positive.
  __device__ void fetch(const __nv_bfloat16* rows, std::int64_t stride, int count) const {
    const int chunk = threadIdx.x % kChunks;
#pragma unroll
    for (int i = 0; i < kMoves; ++i) {
      const int row = threadIdx.x % kWarp / kChunks + i * kTogether;
      const bool real = row < count;
      copy16(address + place(row, chunk), rows + (real ? row : 0) * stride + 8 * chunk, real);
    }
  }

  // `factor` times 16 rows of sums, rounded, through this tile to where they belong; they are
  // written even where they should be added. The tile is the warp's own.
  __device__ void store(const float (&sums)[Width / 8][4], float factor, const RowsOut& to) const {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < Width / 16; ++i) {
      const std::uint32_t words[4] = {
          packed(sums[2 * i][0] * factor, sums[2 * i][1] * factor),
          packed(sums[2 * i][2] * factor, sums[2 * i][3] * factor),
          packed(sums[2 * i + 1][0] * factor, sums[2 * i + 1][1] * factor),
          packed(sums[2 * i + 1][2] * factor, sums[2 * i + 1][3] * factor)};
      store_block(block(i), words);
    }
    __syncwarp();
    const int chunk = threadIdx.x % kChunks;
#pragma unroll
    for (int i = 0; i < kMoves; ++i) {
      const int row = threadIdx.x % kWarp / kChunks + i * kTogether;
      const uint4 words = load_shared16(address + place(row, chunk));
      if (row < to.count) {
        *reinterpret_cast<uint4*>(to.first + row * to.stride + 8 * chunk) = words;
      }
    }
  }
};

// The same, added to what is there: before anything is rounded, so not through shared memory.
template <int Width>
__device__ void add_to_rows(const float (&sums)[Width / 8][4], float factor, const RowsOut& to) {
  const int g = threadIdx.x % kWarp / 4, c = threadIdx.x % 4;
#pragma unroll
  for (int u = 0; u < 2; ++u) {
    if (g + 8 * u >= to.count) continue;
    auto* row = reinterpret_cast<std::uint32_t*>(to.first + (g + 8 * u) * to.stride) + c;
#pragma unroll
    for (int j = 0; j < Width / 8; ++j) {
      const std::uint32_t before = row[4 * j];
      row[4 * j] = packed(low_half(before) + sums[j][2 * u] * factor,
                          high_half(before) + sums[j][2 * u + 1] * factor);
    }
  }
}

// Writes `factor` times 16 rows of sums through a tile of the warp's own, or adds them.
template <int Width>
__device__ void write_rows(const SharedTile<Width>& through, const float (&sums)[Width / 8][4],
                           float factor, const RowsOut& to) {
  if (to.accumulate) return add_to_rows<Width>(sums, factor, to);
  through.store(sums, factor, to);
}

// sums += a b, with the 16 rows of b.
template <int Width>
__device__ void add_product(float (&sums)[Width / 8][4], const std::uint32_t (&a)[4],
                            const SharedTile<Width>& b) {
#pragma unroll
  for (int i = 0; i < Width / 16; ++i) {
    std::uint32_t words[4];
    load_block_transposed(words, b.block(i));
    mma(sums[2 * i], a, words[0], words[1]);
    mma(sums[2 * i + 1], a, words[2], words[3]);
  }
}

// The dot products of rows g and g + 8 of two tiles: the diagonal of a product.
template <int Width>
__device__ void row_dots(float (&dots)[2], const SharedTile<Width>& x, const SharedTile<Width>& y) {
  float low[4] = {}, high[4] = {};
#pragma unroll
  for (int i = 0; i < Width / 16; ++i) {
    std::uint32_t a[4], b[4];
    load_block(a, x.block(i));
    load_block(b, y.block(i));
    mma(low, a, b[0], b[2]);
    mma(high, a, b[1], b[3]);
  }
  const int lane = threadIdx.x % kWarp, g = lane / 4, holder = (lane & ~3) + g / 2;
  dots[0] = __shfl_sync(kAllLanes, g % 2 == 0 ? low[0] : low[1], holder);
  dots[1] = __shfl_sync(kAllLanes, g % 2 == 0 ? high[2] : high[3], holder);
}

// A matrix by its first row, and elements from one to the next.
struct MatrixRows {
  const __nv_bfloat16* first;
  std::int64_t stride;
};

// Rows of two matrices that a block of four warps goes through together: while it computes with
// one stage of them, the next is on its way.
template <int Width>
struct StagedRows {
  static constexpr int kWarps = 4;
  static constexpr int kRows = Width == 128 ? 32 : 64;  // of a stage
  static constexpr int kTiles = kRows / kTileRows;
  static constexpr int kBytes = 4 * kTiles * SharedTile<Width>::kBytes;

  SharedTile<Width> memory;

  // The tile where a stage begins.
  __device__ static int place(int stage) { return stage % 2 * 2 * kTiles; }
  __device__ SharedTile<Width> first(int stage) const { return memory.next(place(stage)); }
  __device__ SharedTile<Width> second(int stage) const { return first(stage).next(kTiles); }

  // The copies begin, of rows from `row` on of `rows`; zeros behind them.
  __device__ void fetch(int stage, const MatrixRows& a, const MatrixRows& b, int row,
                        int rows) const {
    fetch(first(stage), a, row, rows);
    fetch(second(stage), b, row, rows);
  }

 private:
  using Tile = SharedTile<Width>;

  // Of one of them: a thread has every kTogether-th row, whose places are as far from one another.
  __device__ static void fetch(const Tile& to, const MatrixRows& from, int row, int rows) {
    constexpr int kTogether = kWarps * kWarp / Tile::kChunks;
    static_assert(kTogether % 8 == 0 && kRows % kTogether == 0);
    const int own = static_cast<int>(threadIdx.x) / Tile::kChunks,
              chunk = static_cast<int>(threadIdx.x) % Tile::kChunks;
    const std::uint32_t place = to.address + Tile::place(own, chunk);
    const __nv_bfloat16* next = from.first + (row + own) * from.stride + 8 * chunk;
    const auto copy = [&](const auto& real) {
#pragma unroll
      for (int i = 0; i < kRows; i += kTogether, next += kTogether * from.stride) {
        copy16(place + static_cast<std::uint32_t>(i * Tile::kRowBytes), next, real(i));
      }
    };
    if (row + kRows <= rows) return copy([](int) { return true; });
    copy([&](int i) { return row + own + i < rows; });
  }
};

// More than 48 KiB of shared memory must be asked for. Little else is in the first cache, so that
// the multiprocessor may give all it has.
template <class Kernel>
void allow_shared_memory(Kernel* kernel, int bytes) {
  constexpr const char* kWhat = "shared memory of a kernel";
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             kWhat);
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                  cudaSharedmemCarveoutMaxShared),
             kWhat);
}

}  // namespace nunchi::kernels
