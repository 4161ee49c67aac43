#include "nunchi/kernels/memory.h"

#include <cstring>

#include "nunchi/device/cuda/check.h"
#include "nunchi/kernels/cuda/common/device.h"

namespace nunchi::kernels {
namespace {

constexpr int kThreads = 256;

template <class N>
__global__ void fill_kernel(std::int64_t rows, std::int64_t count, std::int64_t stride, N value,
                            N* out) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < rows * count;
       i += step) {
    out[rows == 1 ? i : i / count * stride + i % count] = value;
  }
}

template <class From, class To>
__global__ void convert_kernel(std::int64_t count, const From* from, To* to) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    if constexpr (sizeof(To) == 2) {
      to[i] = __float2bfloat16(static_cast<float>(from[i]));
    } else if constexpr (sizeof(From) == 2) {
      to[i] = static_cast<To>(__bfloat162float(from[i]));
    } else {
      to[i] = static_cast<To>(from[i]);
    }
  }
}

// One thread for every eight columns, or for each column if the width is not a multiple of eight or
// the rows are not aligned.
template <class N, int PerThread>
__global__ void add_into_kernel(AddInto<N> p) {
  const std::int64_t groups = p.width / PerThread;  // of columns in a row
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= p.rows * groups) return;
  const std::int64_t row = i / groups, column = i % groups * PerThread;
  const N* x = p.x + row * p.x_stride + column;
  N* out = p.out + row * p.out_stride + column;
  if constexpr (PerThread == 8) {
    float a[8], b[8];
    load8(x, a);
    load8(out, b);
#pragma unroll
    for (int j = 0; j < 8; ++j) b[j] += a[j];
    store8(out, b);
  } else {
    *out = from_float<N>(to_float(*out) + to_float(*x));
  }
}

template <class N>
__global__ void scale_kernel(std::int64_t count, float factor, const N* x, N* out) {
  wait_for_previous_kernel();
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    out[i] = from_float<N>(to_float(x[i]) * factor);
  }
}

unsigned grid(CudaContext& ctx, std::int64_t count) {
  return std::min(blocks_for(count, kThreads), static_cast<unsigned>(ctx.multiprocessors()) * 16);
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Fill<T>& p) {
  if (p.rows * p.count == 0) return;
  const Native<T> value = *native(&p.value);
  fill_kernel<<<grid(ctx, p.rows * p.count), kThreads, 0, ctx.stream()>>>(p.rows, p.count, p.stride,
                                                                          value, native(p.out));
  check_launch(p.name());
}
template void compute<Cuda>(CudaContext&, const Fill<float>&);
template void compute<Cuda>(CudaContext&, const Fill<double>&);
template void compute<Cuda>(CudaContext&, const Fill<BFloat16>&);
template void compute<Cuda>(CudaContext&, const Fill<std::int32_t>&);

template <class Target, class From, class To>
void compute(ContextOf<Target>& ctx, const Convert<From, To>& p) {
  if (p.count == 0) return;
  convert_kernel<<<grid(ctx, p.count), kThreads, 0, ctx.stream()>>>(p.count, native(p.from),
                                                                    native(p.to));
  check_launch(p.name());
}
template void compute<Cuda>(CudaContext&, const Convert<float, BFloat16>&);
template void compute<Cuda>(CudaContext&, const Convert<BFloat16, float>&);
template void compute<Cuda>(CudaContext&, const Convert<float, double>&);
template void compute<Cuda>(CudaContext&, const Convert<double, float>&);
template void compute<Cuda>(CudaContext&, const Convert<double, BFloat16>&);
template void compute<Cuda>(CudaContext&, const Convert<BFloat16, double>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Scale<T>& p) {
  if (p.count == 0) return;
  launch_overlapped(ctx, p.name(), scale_kernel<Native<T>>, {grid(ctx, p.count), kThreads}, p.count,
                    static_cast<float>(p.factor), native(p.x), native(p.out));
}
template void compute<Cuda>(CudaContext&, const Scale<float>&);
template void compute<Cuda>(CudaContext&, const Scale<BFloat16>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const AddInto<T>& p) {
  if (p.rows * p.width == 0) return;
  using N = Native<T>;
  const AddInto<N> arguments = native(p);
  if (p.width % 8 == 0 && rows_are_aligned(arguments.x, p.x_stride) &&
      rows_are_aligned(arguments.out, p.out_stride)) {
    add_into_kernel<N, 8>
        <<<blocks_for(p.rows * p.width / 8, kThreads), kThreads, 0, ctx.stream()>>>(arguments);
  } else {
    add_into_kernel<N, 1>
        <<<blocks_for(p.rows * p.width, kThreads), kThreads, 0, ctx.stream()>>>(arguments);
  }
  check_launch(p.name());
}
template void compute<Cuda>(CudaContext&, const AddInto<float>&);
template void compute<Cuda>(CudaContext&, const AddInto<BFloat16>&);

template <>
void compute<Cuda>(CudaContext& ctx, const CopyBytes& p) {
  if (p.bytes == 0) return;
  switch (p.direction) {
    case CopyBytes::Direction::to_device: {
      if (ctx.capturing()) throw Error("a captured graph cannot copy from the host.");
      // Through pinned memory, so that the host waits only if the ring is full.
      const auto* from = static_cast<const std::byte*>(p.from);
      for (std::size_t done = 0; done < p.bytes; done += PinnedRing::kHalfBytes) {
        const std::size_t chunk = std::min(PinnedRing::kHalfBytes, p.bytes - done);
        std::byte* pinned = ctx.pinned().take(chunk);
        std::memcpy(pinned, from + done, chunk);
        check_cuda(cudaMemcpyAsync(static_cast<std::byte*>(p.to) + done, pinned, chunk,
                                   cudaMemcpyHostToDevice, ctx.stream()),
                   "copy to the GPU");
      }
      return;
    }
    case CopyBytes::Direction::to_host:
      check_cuda(cudaMemcpyAsync(p.to, p.from, p.bytes, cudaMemcpyDeviceToHost, ctx.stream()),
                 "copy from the GPU");
      return ctx.synchronize();
    case CopyBytes::Direction::within:
      check_cuda(cudaMemcpyAsync(p.to, p.from, p.bytes, cudaMemcpyDeviceToDevice, ctx.stream()),
                 "copy on the GPU");
      return;
  }
}

}  // namespace nunchi::kernels
