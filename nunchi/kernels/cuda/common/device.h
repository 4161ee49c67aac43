// Shared by the CUDA kernels: native types, loads and stores of eight elements, rows, dropout,
// launches.
//
// Kernels are templates over native types (float, __nv_bfloat16). compute() passes them their
// argument struct over native types, native(p), and the values it has computed for the launch.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "nunchi/base/random.h"
#include "nunchi/device/cuda/check.h"
#include "nunchi/kernels/dropout.h"
#include "nunchi/kernels/rows.h"
#include "nunchi/kernels/run.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi {

template <>
struct AccumulatorOf<__nv_bfloat16> {
  using Type = float;
};

}  // namespace nunchi

namespace nunchi::kernels {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;
constexpr float kLog2E = 1.44269504f;

__device__ inline int lane_of_thread() { return static_cast<int>(threadIdx.x % kWarp); }

template <class T>
struct NativeOf {
  using Type = T;
};
template <>
struct NativeOf<BFloat16> {
  using Type = __nv_bfloat16;
};
template <class T>
using Native = typename NativeOf<T>::Type;

template <class T>
Native<T>* native(T* pointer) {
  return reinterpret_cast<Native<T>*>(pointer);
}
template <class T>
const Native<T>* native(const T* pointer) {
  return reinterpret_cast<const Native<T>*>(pointer);
}
// A kernel's arguments with pointers to native elements, in the same layout.
template <template <class> class Arguments, class T>
Arguments<Native<T>> native(const Arguments<T>& p) {
  return std::bit_cast<Arguments<Native<T>>>(p);
}

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class N>
__device__ N from_float(float x) {
  if constexpr (sizeof(N) == 2) {
    return __float2bfloat16(x);
  } else {
    return x;
  }
}

// Eight neighbouring elements in their storage type: a prefetched row takes as few registers as
// possible.
template <class N>
struct Packed8;
template <>
struct Packed8<__nv_bfloat16> {
  uint4 words;
};
template <>
struct Packed8<float> {
  float4 low, high;
};
// Streaming loads, for data that is not read again soon: evicted from the cache first.
__device__ inline void load_once(const __nv_bfloat16* from, Packed8<__nv_bfloat16>& x) {
  x.words = __ldcs(reinterpret_cast<const uint4*>(from));
}
__device__ inline void load_once(const float* from, Packed8<float>& x) {
  x.low = __ldcs(reinterpret_cast<const float4*>(from));
  x.high = __ldcs(reinterpret_cast<const float4*>(from + 4));
}
template <class N>
__device__ void load8(const N* from, Packed8<N>& x) {
  x = *reinterpret_cast<const Packed8<N>*>(from);
}
template <class N>
__device__ void store8(N* to, const Packed8<N>& x) {
  *reinterpret_cast<Packed8<N>*>(to) = x;
}
// The address of a row with one multiply-add: row number and bytes per row have 32 bits each.
template <class N>
__device__ N* row_at(N* matrix, std::int64_t stride, std::int64_t row) {
  const auto bytes = static_cast<std::uint32_t>(stride * static_cast<std::int64_t>(sizeof(N)));
  const auto offset = std::uint64_t{static_cast<std::uint32_t>(row)} * bytes;
  using Byte = std::conditional_t<std::is_const_v<N>, const char, char>;
  return reinterpret_cast<N*>(reinterpret_cast<Byte*>(matrix) + offset);
}

// The two bf16 of a word as floats.
__device__ inline float low_half(std::uint32_t word) { return __uint_as_float(word << 16); }
__device__ inline float high_half(std::uint32_t word) {
  return __uint_as_float(word & 0xFFFF0000u);
}
__device__ inline void unpack(const uint4& words, float (&x)[8]) {
  x[0] = low_half(words.x), x[1] = high_half(words.x), x[2] = low_half(words.y);
  x[3] = high_half(words.y), x[4] = low_half(words.z), x[5] = high_half(words.z);
  x[6] = low_half(words.w), x[7] = high_half(words.w);
}
__device__ inline void unpack(const Packed8<__nv_bfloat16>& from, float (&x)[8]) {
  unpack(from.words, x);
}
__device__ inline void unpack(const Packed8<float>& from, float (&x)[8]) {
  x[0] = from.low.x, x[1] = from.low.y, x[2] = from.low.z, x[3] = from.low.w;
  x[4] = from.high.x, x[5] = from.high.y, x[6] = from.high.z, x[7] = from.high.w;
}

// Eight neighbouring elements at once: 16 bytes of bf16 or 32 bytes of f32. `from` and `to` are
// aligned to 16 bytes.
template <class N>
__device__ void load8(const N* from, float (&x)[8]) {
  Packed8<N> eight;
  load8(from, eight);
  unpack(eight, x);
}
__device__ inline void store8(float* to, const float (&x)[8]) {
  *reinterpret_cast<float4*>(to) = make_float4(x[0], x[1], x[2], x[3]);
  *reinterpret_cast<float4*>(to + 4) = make_float4(x[4], x[5], x[6], x[7]);
}
__device__ inline void store8(__nv_bfloat16* to, const float (&x)[8]) {
  std::uint32_t word[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(x[2 * i], x[2 * i + 1]);
    word[i] = *reinterpret_cast<const std::uint32_t*>(&pair);
  }
  *reinterpret_cast<uint4*>(to) = make_uint4(word[0], word[1], word[2], word[3]);
}

// Whether rows `stride` elements apart from `pointer` can be read eight elements at a time.
template <class N>
bool rows_are_aligned(const N* pointer, std::int64_t stride) {
  return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0 && stride % 8 == 0;
}

// 2^x, to about 22 bits; 0 for -infinity and for results below the smallest normal number.
__device__ inline float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// e^x for sums: accurate in f32 kernels, the fast approximation in bf16 kernels.
template <class N>
__device__ float exponential(float x) {
  if constexpr (sizeof(N) == 4) {
    return expf(x);
  } else {
    return fast_exp2(x * kLog2E);
  }
}

__device__ inline float warp_sum(float x) {
#pragma unroll
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) x += __shfl_xor_sync(kAllLanes, x, lanes);
  return x;
}
__device__ inline float warp_max(float x) {
#pragma unroll
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) {
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, lanes));
  }
  return x;
}

// The number of real rows, at most the capacity.
__device__ inline std::int64_t real_rows(const Rows& rows) {
  return rows.count != nullptr ? *rows.count : rows.capacity;
}

// Dropout as kernels take it, with threshold and scale computed on the host.
struct DropoutParameters {
  const RandomKey* key = nullptr;
  std::uint32_t operation_id = 0;
  std::uint32_t threshold = 0;  // 0: nothing is dropped
  float scale = 1;

  DropoutParameters() = default;
  explicit DropoutParameters(const Dropout& dropout)
      : key(dropout.key),
        operation_id(dropout.operation_id),
        threshold(dropout.threshold()),
        scale(static_cast<float>(dropout.scale())) {}
  __host__ __device__ bool active() const { return threshold > 0; }
};

// The dropout factors of eight neighbouring columns, `column` a multiple of eight: 0 or the scale.
__device__ inline void compute_dropout_factors(const DropoutParameters& dropout, philox::Key key,
                                               std::uint32_t column, std::uint32_t row,
                                               std::uint32_t sentence, float (&factor)[8]) {
  const philox::Words words = philox::bits({column / 8, row, sentence, dropout.operation_id}, key);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const std::uint32_t draw = (words[i / 2] >> (16 * (i % 2))) & 0xFFFFu;
    factor[i] = draw < dropout.threshold ? 0.0f : dropout.scale;
  }
}

// Kernels of a decode step take a few microseconds, as long as launching one. launch_overlapped()
// launches a kernel while the previous one still runs (programmatic dependent launch). The kernel
// calls wait_for_previous_kernel() before it touches memory that an earlier kernel writes or reads;
// work before that call (loading weights into registers or shared memory) overlaps with the
// previous kernel.
//
// So an overlapped kernel may read parameters (weights, biases, gamma, beta) before
// wait_for_previous_kernel(). This is safe because every kernel that writes parameters (Adam,
// Convert, Fill, copies: see nn/parameters.cpp) is launched normally, and a kernel that does not
// call wait_for_previous_kernel() completes before any later kernel starts. Never launch a kernel
// that writes parameters with launch_overlapped().
__device__ inline void wait_for_previous_kernel() {
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

struct Grid {
  dim3 blocks;
  unsigned threads = 0;
  std::size_t shared = 0;
};

template <class... Parameters, class... Arguments>
void launch_overlapped(CudaContext& ctx, const char* name, void (*kernel)(Parameters...),
                       const Grid& grid, Arguments... arguments) {
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  // Changing the shared-memory carveout waits until a multiprocessor is empty, so all kernels of a
  // step ask for the same one.
  attributes[1].id = cudaLaunchAttributePreferredSharedMemoryCarveout;
  attributes[1].val.sharedMemCarveout = cudaSharedmemCarveoutMaxShared;
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = dim3(grid.threads);
  config.dynamicSmemBytes = grid.shared;
  config.stream = ctx.stream();
  config.attrs = attributes;
  config.numAttrs = 2;
  check_cuda(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), name);
}

inline std::int64_t div_ceil(std::int64_t dividend, std::int64_t divisor) {
  return (dividend + divisor - 1) / divisor;
}
inline unsigned blocks_for(std::int64_t items, std::int64_t items_per_block) {
  return static_cast<unsigned>(div_ceil(items, items_per_block));
}

// After each launch: throws Error if its configuration was invalid.
inline void check_launch(const char* kernel) { check_cuda(cudaGetLastError(), kernel); }

}  // namespace nunchi::kernels
