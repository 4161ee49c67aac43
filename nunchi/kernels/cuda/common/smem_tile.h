// Tiles of bf16 rows in shared memory, as the tensor cores read them.
//
// A tile has 16 rows. One ldmatrix instruction of a warp loads a block of it, 16 x 16 elements as
// four 8 x 8 matrices: (rows 0-7, columns 0-7), (8-15, 0-7), (0-7, 8-15), (8-15, 8-15). In the
// terms of mma.h, word[0..3] of a block serve as
//   A of a product over the block's columns, or
//   B of two such products: word[0], word[2] for its first eight rows, word[1], word[3] for the
//   last eight.
// Loaded transposed, they serve as
//   B of two products over the block's rows: word[0], word[1] for its first eight columns, word[2],
//   word[3] for the last eight, or
//   A of a product over its rows, with word[1] and word[2] exchanged.
// Chunks of eight elements (16 bytes) stay together; their order within a row is swizzled by the
// row's number, so that neither eight rows of a matrix nor a whole row have bank conflicts.
#pragma once

#include "nunchi/kernels/cuda/common/mma.h"

namespace nunchi::kernels {

constexpr int kTileRows = 16;

// Shared memory has 32-bit addresses.
__device__ inline std::uint32_t shared_address(const void* memory) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(memory));
}

// Copies 16 bytes asynchronously (cp.async), or writes zeros if not `real`; `from` must be a valid
// address even then.
__device__ inline void copy_async16(std::uint32_t to, const void* from, bool real) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(real ? 16 : 0)
               : "memory");
}
// The same for 8 bytes.
__device__ inline void copy_async8(std::uint32_t to, const void* from, bool real) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from),
               "r"(real ? 8 : 0)
               : "memory");
}
// Commits the thread's copies since the last call as a group, which may be empty.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most the thread's `Latest` newest groups are still being copied.
template <int Latest>
__device__ void wait_for_copy_groups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Latest) : "memory");
}
// Waits for all copies of the thread.
__device__ inline void wait_for_all_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

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

// Destination of a result of 16 rows, of which the first `count` are written.
struct OutputRows {
  __nv_bfloat16* first;
  std::int64_t stride;
  int count;
  bool accumulate = false;
};

// A tile, given by the address of its first byte, a multiple of 16.
template <int Width>
struct SmemTile {
  static constexpr int kRowBytes = 2 * Width, kBytes = kTileRows * kRowBytes;
  static constexpr int kChunks = Width / 8;                    // chunks per row
  static constexpr int kRowsPerPass = kWarp / kChunks;         // rows that a warp copies together
  static constexpr int kCopies = kTileRows * kChunks / kWarp;  // copies per lane and tile

  std::uint32_t address;

  __device__ static std::uint32_t offset_of(int row, int chunk) {
    const int swizzle = Width == 32 ? row / 2 % 4 : row % 8;
    return static_cast<std::uint32_t>(row * kRowBytes + (chunk ^ swizzle) * 16);
  }
  // Address of this lane's row of the block that begins at column 16 * i.
  __device__ std::uint32_t block(int i) const {
    const int lane = lane_of_thread();
    return address + (offset_of(lane % 16, lane / 16) ^ static_cast<std::uint32_t>(32 * i));
  }
  // Tile n of several consecutive tiles, of which this is tile 0.
  __device__ SmemTile tile(int n) const {
    return {address + static_cast<std::uint32_t>(n * kBytes)};
  }

  // Starts the warp's asynchronous copies of `count` rows (at most 16); rows after them become
  // zero. `rows` must be a valid address even if the count is not positive.
  __device__ void copy_async(const __nv_bfloat16* rows, std::int64_t stride, int count) const {
    const int chunk = threadIdx.x % kChunks;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int row = threadIdx.x % kWarp / kChunks + i * kRowsPerPass;
      const bool real = row < count;
      copy_async16(address + offset_of(row, chunk), rows + (real ? row : 0) * stride + 8 * chunk,
                   real);
    }
  }

  // Rounds `factor` times 16 rows of accumulators into this tile, which only this warp may use, and
  // copies the tile to `to`; ignores `to.accumulate`.
  __device__ void store(const float (&sums)[Width / 8][4], float factor,
                        const OutputRows& to) const {
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
    for (int i = 0; i < kCopies; ++i) {
      const int row = threadIdx.x % kWarp / kChunks + i * kRowsPerPass;
      const uint4 words = load_shared16(address + offset_of(row, chunk));
      if (row < to.count) {
        *reinterpret_cast<uint4*>(to.first + row * to.stride + 8 * chunk) = words;
      }
    }
  }
};

// Accumulates directly from registers: the sum must be computed before rounding.
template <int Width>
__device__ void add_to_rows(const float (&sums)[Width / 8][4], float factor, const OutputRows& to) {
  const int g = threadIdx.x % kWarp / 4, c = threadIdx.x % 4;
#pragma unroll
  for (int u = 0; u < 2; ++u) {
    if (g + 8 * u >= to.count) continue;
    auto* row = reinterpret_cast<std::uint32_t*>(to.first + (g + 8 * u) * to.stride) + c;
#pragma unroll
    for (int j = 0; j < Width / 8; ++j) {
      const std::uint32_t old = row[4 * j];
      row[4 * j] = packed(low_half(old) + sums[j][2 * u] * factor,
                          high_half(old) + sums[j][2 * u + 1] * factor);
    }
  }
}

// Writes `factor` times 16 rows of accumulators through a tile that the warp owns, or adds them to
// the destination.
template <int Width>
__device__ void write_rows(const SmemTile<Width>& through, const float (&sums)[Width / 8][4],
                           float factor, const OutputRows& to) {
  if (to.accumulate) return add_to_rows<Width>(sums, factor, to);
  through.store(sums, factor, to);
}

// sums += a b, where b is a tile of 16 rows.
template <int Width>
__device__ void add_product(float (&sums)[Width / 8][4], const std::uint32_t (&a)[4],
                            const SmemTile<Width>& b) {
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
__device__ void row_dots(float (&dots)[2], const SmemTile<Width>& x, const SmemTile<Width>& y) {
  float low[4] = {}, high[4] = {};
#pragma unroll
  for (int i = 0; i < Width / 16; ++i) {
    std::uint32_t a[4], b[4];
    load_block(a, x.block(i));
    load_block(b, y.block(i));
    mma(low, a, b[0], b[2]);
    mma(high, a, b[1], b[3]);
  }
  const int lane = lane_of_thread(), g = lane / 4, holder = (lane & ~3) + g / 2;
  dots[0] = __shfl_sync(kAllLanes, g % 2 == 0 ? low[0] : low[1], holder);
  dots[1] = __shfl_sync(kAllLanes, g % 2 == 0 ? high[2] : high[3], holder);
}

// A matrix in device memory: its first row, and the stride of its rows in elements.
struct MatrixRows {
  const __nv_bfloat16* first;
  std::int64_t stride;
};

// Two matrices whose rows a block of four warps reads in stages: while it computes with one stage,
// the next is being copied.
template <int Width>
struct DoubleBufferedRows {
  static constexpr int kWarps = 4;
  static constexpr int kRows = Width == 128 ? 32 : 64;  // rows per matrix and stage
  static constexpr int kTiles = kRows / kTileRows;
  static constexpr int kBytes = 4 * kTiles * SmemTile<Width>::kBytes;

  SmemTile<Width> memory;

  // Index of the first tile of a stage: the first matrix's tiles, then the second matrix's.
  __device__ static int first_tile(int stage) { return stage % 2 * 2 * kTiles; }
  __device__ SmemTile<Width> first(int stage) const { return memory.tile(first_tile(stage)); }
  __device__ SmemTile<Width> second(int stage) const { return first(stage).tile(kTiles); }

  // Starts copying kRows rows of both matrices, from `first_row` on, into a stage; rows from
  // `row_count` on become zero.
  __device__ void copy_async(int stage, const MatrixRows& a, const MatrixRows& b, int first_row,
                             int row_count) const {
    copy_async(first(stage), a, first_row, row_count);
    copy_async(second(stage), b, first_row, row_count);
  }

 private:
  using Tile = SmemTile<Width>;

  // A thread copies every kRowsPerPass-th row; the swizzle repeats after eight rows, so a
  // thread's rows share one swizzled offset.
  __device__ static void copy_async(const Tile& to, const MatrixRows& from, int first_row,
                                    int row_count) {
    constexpr int kRowsPerPass = kWarps * kWarp / Tile::kChunks;
    static_assert(kRowsPerPass % 8 == 0 && kRows % kRowsPerPass == 0);
    const int thread_row = static_cast<int>(threadIdx.x) / Tile::kChunks,
              chunk = static_cast<int>(threadIdx.x) % Tile::kChunks;
    const std::uint32_t offset = to.address + Tile::offset_of(thread_row, chunk);
    const __nv_bfloat16* next = from.first + (first_row + thread_row) * from.stride + 8 * chunk;
    const auto copy = [&](const auto& real) {
#pragma unroll
      for (int i = 0; i < kRows; i += kRowsPerPass, next += kRowsPerPass * from.stride) {
        copy_async16(offset + static_cast<std::uint32_t>(i * Tile::kRowBytes), next, real(i));
      }
    };
    if (first_row + kRows <= row_count) return copy([](int) { return true; });
    copy([&](int i) { return first_row + thread_row + i < row_count; });
  }
};

// Lets a kernel use `bytes` of dynamic shared memory, also more than the default limit of 48 KiB,
// and sets the largest shared-memory carveout: these kernels hardly use the L1 cache.
template <class Kernel>
void allow_shared_memory(Kernel* kernel, int bytes) {
  constexpr const char* kAction = "set the shared memory of a kernel";
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             kAction);
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                  cudaSharedmemCarveoutMaxShared),
             kAction);
}

}  // namespace nunchi::kernels
