// Products by a warpgroup of four warps (wgmma) with both factors in shared memory. Each warp holds
// 16 of the 64 rows of accumulators, spread over its lanes as in mma.h.
//
// Factors are rows of 64 elements, swizzled as in SmemTile<64>, aligned to 1,024 bytes. Writes to
// them become visible to wgmma after fence_shared_writes() and a barrier. All warps of the group
// call every function here together.
#pragma once

#include <cstdint>

#include "nunchi/kernels/cuda/common/device.h"

namespace nunchi::kernels {

constexpr int kWgmmaRows = 64, kWgmmaWarps = 4;

__device__ inline void fence_shared_writes() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Orders register accesses before the following products.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// Commits the products since wgmma_fence() as a group.
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits for all committed groups.
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// The matrix descriptor of rows in shared memory: address, stride of eight rows of 128 bytes, and
// the 128-byte swizzle.
__device__ inline std::uint64_t wgmma_descriptor(std::uint32_t address) {
  constexpr std::uint64_t kEightRows = 1024 >> 4, kSwizzle128 = 1;
  return (address & 0x3FFFFu) >> 4 | std::uint64_t{1} << 16 | kEightRows << 32 | kSwizzle128 << 62;
}

#define NUNCHI_4(x, i) "+f"(x[i]), "+f"(x[i + 1]), "+f"(x[i + 2]), "+f"(x[i + 3])
#define NUNCHI_16(x, i) NUNCHI_4(x, i), NUNCHI_4(x, i + 4), NUNCHI_4(x, i + 8), NUNCHI_4(x, i + 12)
#define NUNCHI_64(x, i) \
  NUNCHI_16(x, i), NUNCHI_16(x, i + 16), NUNCHI_16(x, i + 32), NUNCHI_16(x, i + 48)
#define NUNCHI_0_TO_63                                                               \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NUNCHI_64_TO_127                                                                   \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "       \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "       \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, " \
  "%111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, "   \
  "%125, %126, %127"

// sums = a bᵀ or sums += a bᵀ over 16 elements of each row: 64 rows of a, 128 rows of b.
__device__ inline void wgmma(float (&sums)[64], std::uint64_t a, std::uint64_t b, bool add) {
  asm volatile(
      "{\n"
      " .reg .pred add;\n"
      " setp.ne.b32 add, %66, 0;\n"
      " wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" NUNCHI_0_TO_63
      "}, %64, %65, add, 1, 1, 0, 0;\n"
      "}"
      : NUNCHI_64(sums, 0)
      : "l"(a), "l"(b), "r"(add ? 1 : 0));
}
// The same with 256 rows of b.
__device__ inline void wgmma(float (&sums)[128], std::uint64_t a, std::uint64_t b, bool add) {
  asm volatile(
      "{\n"
      " .reg .pred add;\n"
      " setp.ne.b32 add, %130, 0;\n"
      " wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" NUNCHI_0_TO_63
      ", " NUNCHI_64_TO_127
      "}, %128, %129, add, 1, 1, 0, 0;\n"
      "}"
      : NUNCHI_64(sums, 0), NUNCHI_64(sums, 64)
      : "l"(a), "l"(b), "r"(add ? 1 : 0));
}

#undef NUNCHI_4
#undef NUNCHI_16
#undef NUNCHI_64
#undef NUNCHI_0_TO_63
#undef NUNCHI_64_TO_127

}  // namespace nunchi::kernels
