// Products of small tiles on tensor cores, straight from global memory: no shared memory between.
//
// mma.m16n8k16 adds A [16, 16] times B [16, 8] to C [16, 8]. With g = lane / 4 and c = lane % 4 a
// lane holds, two bf16 in a register,
//   A: rows g, g + 8 at k = 2c, 2c + 1, then the same rows at k = 2c + 8, 2c + 9
//   B: k = 2c, 2c + 1, then k = 2c + 8, 2c + 9, of column g
//   C: row g at columns 2c, 2c + 1, then row g + 8 (four f32)
// so that C of two neighbouring tiles, rounded, is A of the next product.
//
// Which element of a matrix each k and each column stands for is ours to choose, and both choices
// here make a lane's elements neighbours in memory:
//   RowShare   rows whose elements are contracted (D is k), as A or as B. Of each 32 elements lane
//   c
//              takes the 8 from 8c on, in four registers; two steps of k use up two each.
//   RowBlock   16 rows that are contracted themselves (rows are k, D the columns), as B. Column n
//   of
//              tile j stands for element 8n + j (of each 64; 4n + j where D is 32): a lane takes
//              8 (4) neighbouring elements of four rows and zips pairs of rows.
// A sum over a RowBlock has its columns in the same order: see store_row().
#pragma once

#include "nunchi/kernels/cuda/device.h"

namespace nunchi::kernels::cuda {

__device__ inline void mma(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                           std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// 2^x to within two bits of f32; 0 for -infinity.
__device__ inline float exp2_approximate(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline std::uint32_t packed(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}
__device__ inline float low_half(std::uint32_t word) { return __uint_as_float(word << 16); }
__device__ inline float high_half(std::uint32_t word) {
  return __uint_as_float(word & 0xFFFF0000u);
}

// A lane's part of one row of D elements.
template <int D>
struct RowShare {
  std::uint32_t word[D / 8];

  // `row` is the row's first element; zeros where there is no such row.
  __device__ void load(const __nv_bfloat16* row, bool real) {
#pragma unroll
    for (int i = 0; i < D / 32; ++i) {
      uint4 words = make_uint4(0, 0, 0, 0);
      if (real) words = *reinterpret_cast<const uint4*>(row + 32 * i + threadIdx.x % 4 * 8);
      word[4 * i] = words.x, word[4 * i + 1] = words.y;
      word[4 * i + 2] = words.z, word[4 * i + 3] = words.w;
    }
  }
};

// The lane's part of the dot product of two rows; the sum over lanes g * 4 + {0, 1, 2, 3} is all.
template <int D>
__device__ float dot_share(const RowShare<D>& a, const RowShare<D>& b) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < D / 8; ++i) {
    sum += low_half(a.word[i]) * low_half(b.word[i]);
    sum += high_half(a.word[i]) * high_half(b.word[i]);
  }
  return sum;
}

// Over the four lanes that hold one row of C.
__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(kAllLanes, x, 1);
  return x + __shfl_xor_sync(kAllLanes, x, 2);
}
__device__ inline float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, 1));
  return fmaxf(x, __shfl_xor_sync(kAllLanes, x, 2));
}

// c += a bᵀ: rows g (`low`) and g + 8 (`high`) of a, row g of b.
template <int D>
__device__ void add_dots(float (&c)[4], const RowShare<D>& low, const RowShare<D>& high,
                         const RowShare<D>& b) {
#pragma unroll
  for (int i = 0; i < D / 8; i += 2) {
    const std::uint32_t a[4] = {low.word[i], high.word[i], low.word[i + 1], high.word[i + 1]};
    mma(c, a, b.word[i], b.word[i + 1]);
  }
}

// A lane's part of 16 rows of D elements: of the rows 2c, 2c + 1, 2c + 8 and 2c + 9.
template <int D>
struct RowBlock {
  std::uint32_t word[4][D / 16];

  // `rows` is the first element of the first row; rows from `count` on are zeros.
  __device__ void load(const __nv_bfloat16* rows, std::int64_t stride, int count) {
    const int g = threadIdx.x % kWarp / 4, c = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = 2 * c + i % 2 + i / 2 * 8;
      const __nv_bfloat16* row = rows + r * stride;
      if constexpr (D == 32) {
        uint2 words = make_uint2(0, 0);
        if (r < count) words = *reinterpret_cast<const uint2*>(row + 4 * g);
        word[i][0] = words.x, word[i][1] = words.y;
      } else {
#pragma unroll
        for (int part = 0; part < D / 64; ++part) {
          uint4 words = make_uint4(0, 0, 0, 0);
          if (r < count) words = *reinterpret_cast<const uint4*>(row + 64 * part + 8 * g);
          word[i][4 * part] = words.x, word[i][4 * part + 1] = words.y;
          word[i][4 * part + 2] = words.z, word[i][4 * part + 3] = words.w;
        }
      }
    }
  }
};

// sums += a b, with the 16 rows of b.
template <int D>
__device__ void add_rows(float (&sums)[D / 8][4], const std::uint32_t (&a)[4],
                         const RowBlock<D>& b) {
#pragma unroll
  for (int i = 0; i < D / 16; ++i) {
    mma(sums[2 * i], a, __byte_perm(b.word[0][i], b.word[1][i], 0x5410),
        __byte_perm(b.word[2][i], b.word[3][i], 0x5410));
    mma(sums[2 * i + 1], a, __byte_perm(b.word[0][i], b.word[1][i], 0x7632),
        __byte_perm(b.word[2][i], b.word[3][i], 0x7632));
  }
}

// A of the next product from two neighbouring tiles of C.
__device__ inline void to_a(std::uint32_t (&a)[4], const float (&left)[4],
                            const float (&right)[4]) {
  a[0] = packed(left[0], left[1]);
  a[1] = packed(left[2], left[3]);
  a[2] = packed(right[0], right[1]);
  a[3] = packed(right[2], right[3]);
}

// Writes or adds `factor` times row g + 8 * Upper of sums over RowBlocks to `row`.
template <int D, int Upper>
__device__ void store_row(__nv_bfloat16* row, const float (&sums)[D / 8][4], float factor,
                          bool accumulate) {
  constexpr int kRun = D == 32 ? 4 : 8;  // neighbours that the lane holds
  const int c = threadIdx.x % 4;
#pragma unroll
  for (int part = 0; part < D / (8 * kRun); ++part) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      __nv_bfloat16* to = row + part * 8 * kRun + (2 * c + e) * kRun;
      float x[kRun];
#pragma unroll
      for (int j = 0; j < kRun; ++j) x[j] = sums[part * kRun + j][2 * Upper + e] * factor;
      if constexpr (kRun == 8) {
        if (accumulate) {
          float before[8];
          load8(to, before);
#pragma unroll
          for (int j = 0; j < 8; ++j) x[j] += before[j];
        }
        store8(to, x);
      } else {
        if (accumulate) {
          const uint2 before = *reinterpret_cast<const uint2*>(to);
          x[0] += low_half(before.x), x[1] += high_half(before.x);
          x[2] += low_half(before.y), x[3] += high_half(before.y);
        }
        *reinterpret_cast<uint2*>(to) = make_uint2(packed(x[0], x[1]), packed(x[2], x[3]));
      }
    }
  }
}

}  // namespace nunchi::kernels::cuda
