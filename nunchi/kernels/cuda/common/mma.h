// Products of small tiles on the tensor cores.
//
// mma.m16n8k16 adds A [16, 16] times B [16, 8] to C [16, 8]. With g = lane / 4 and c = lane % 4,
// a lane holds (two bf16 per register)
//   A: rows g, g + 8 at k = 2c, 2c + 1, then the same rows at k = 2c + 8, 2c + 9
//   B: k = 2c, 2c + 1, then k = 2c + 8, 2c + 9, of column g
//   C: row g at columns 2c, 2c + 1, then row g + 8 (four f32)
// so that C of two neighbouring tiles, rounded, is A of the next product. smem_tile.h says how A
// and B are loaded.
#pragma once

#include "nunchi/kernels/cuda/common/device.h"

namespace nunchi::kernels {

__device__ inline void mma(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                           std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// c = A B, without an addend.
__device__ inline void first_mma(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                 std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%10, %10, %10, %10};"
      : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.0f));
}

__device__ inline std::uint32_t packed(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

// Reductions over the four lanes that hold one row of C.
__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(kAllLanes, x, 1);
  return x + __shfl_xor_sync(kAllLanes, x, 2);
}
__device__ inline float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, 1));
  return fmaxf(x, __shfl_xor_sync(kAllLanes, x, 2));
}

// A of the next product from two neighbouring tiles of C.
__device__ inline void to_a(std::uint32_t (&a)[4], const float (&left)[4],
                            const float (&right)[4]) {
  a[0] = packed(left[0], left[1]);
  a[1] = packed(left[2], left[3]);
  a[2] = packed(right[0], right[1]);
  a[3] = packed(right[2], right[3]);
}

}  // namespace nunchi::kernels
