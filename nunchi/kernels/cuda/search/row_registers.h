// Part of a row that a block keeps in registers: loaded once, read several times.
//
// The assignment of elements to threads depends only on the block's size and on Aligned, not on the
// row's address, so that sums over a row always have the same order.
#pragma once

#include "nunchi/kernels/cuda/common/device.h"

namespace nunchi::kernels {

// Each thread has `Groups` groups of 16 bytes. Aligned: a group is one load; the row is aligned to
// 16 bytes and its size is a multiple of a group's. Otherwise elements are loaded one by one,
// adjacent ones by adjacent threads.
template <class N, int Threads, int Groups, bool Aligned>
class RowRegisters {
 public:
  static constexpr int kGroup = 16 / static_cast<int>(sizeof(N));
  static constexpr int kCapacity = Threads * Groups * kGroup;

  // Loads the first kCapacity of `size` elements.
  __device__ void load(const N* x, int size) {
    size_ = size;
#pragma unroll
    for (int g = 0; g < Groups; ++g) {
      if constexpr (Aligned) {
        const int at = index(g, 0);
        const uint4 words =
            at < size ? *reinterpret_cast<const uint4*>(x + at) : make_uint4(0, 0, 0, 0);
        words_[g][0] = words.x, words_[g][1] = words.y;
        words_[g][2] = words.z, words_[g][3] = words.w;
      } else {
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          if constexpr (sizeof(N) == 4) {
            words_[g][w] = bits(x, index(g, w));
          } else {
            words_[g][w] = bits(x, index(g, 2 * w)) | bits(x, index(g, 2 * w + 1)) << 16;
          }
        }
      }
    }
  }

  // f(value, index) for each of this thread's elements.
  template <class F>
  __device__ void each(F&& f) const {
#pragma unroll
    for (int g = 0; g < Groups; ++g) {
      if (Aligned && index(g, 0) >= size_) continue;
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        if (Aligned || index(g, j) < size_) f(value(g, j), index(g, j));
      }
    }
  }

  // x[index] = f(value) for each of this thread's elements.
  template <class F>
  __device__ void map(N* x, F&& f) const {
#pragma unroll
    for (int g = 0; g < Groups; ++g) {
      if constexpr (Aligned) {
        if (index(g, 0) >= size_) continue;
        float out[kGroup];
#pragma unroll
        for (int j = 0; j < kGroup; ++j) out[j] = f(value(g, j));
        if constexpr (sizeof(N) == 4) {
          *reinterpret_cast<float4*>(x + index(g, 0)) = make_float4(out[0], out[1], out[2], out[3]);
        } else {
          store8(x + index(g, 0), out);
        }
      } else {
#pragma unroll
        for (int j = 0; j < kGroup; ++j) {
          if (index(g, j) < size_) x[index(g, j)] = from_float<N>(f(value(g, j)));
        }
      }
    }
  }

  // Sets the element at `at` to -infinity, if this thread has it.
  __device__ void remove(int at) {
#pragma unroll
    for (int g = 0; g < Groups; ++g) {
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        if (index(g, j) != at) continue;
        if constexpr (sizeof(N) == 4) {
          words_[g][j] = 0xFF800000u;
        } else {
          std::uint32_t& word = words_[g][j / 2];
          word = j % 2 == 0 ? (word & 0xFFFF0000u) | 0xFF80u : (word & 0xFFFFu) | 0xFF800000u;
        }
      }
    }
  }

  // Whether this thread has the element at `at` of a row that is loaded from its beginning,
  // kCapacity elements at a time.
  __device__ static bool has(int at) {
    return (Aligned ? at / kGroup : at) % Threads == static_cast<int>(threadIdx.x);
  }

 private:
  __device__ static int index(int g, int j) {
    const int thread = static_cast<int>(threadIdx.x);
    return Aligned ? (g * Threads + thread) * kGroup + j : (g * kGroup + j) * Threads + thread;
  }
  __device__ std::uint32_t bits(const N* x, int at) const {
    if (at >= size_) return 0;
    if constexpr (sizeof(N) == 4) {
      return __float_as_uint(x[at]);
    } else {
      return __bfloat16_as_ushort(x[at]);
    }
  }
  __device__ float value(int g, int j) const {
    if constexpr (sizeof(N) == 4) {
      return __uint_as_float(words_[g][j]);
    } else {
      const std::uint32_t word = words_[g][j / 2];
      return __uint_as_float(j % 2 == 0 ? word << 16 : word & 0xFFFF0000u);
    }
  }

  std::uint32_t words_[Groups][4];
  int size_ = 0;
};

}  // namespace nunchi::kernels
