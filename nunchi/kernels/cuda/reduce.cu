#include "nunchi/kernels/reduce.h"

#include "nunchi/kernels/cuda/common/column_sums.h"
#include "nunchi/kernels/cuda/common/device.h"

namespace nunchi::kernels {
namespace {

constexpr int kThreads = 256;

// One partial sum of x, or of its squares, per block, in f64.
template <class N>
__global__ void partial_sums_kernel(std::int64_t count, bool squares, const N* x,
                                    double* partials) {
  __shared__ double sums[kThreads];
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  double sum = 0;
#pragma unroll 4
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) {
    const double value = to_float(x[i]);
    sum += squares ? value * value : value;
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) partials[blockIdx.x] = sums[0];
}

// The sum of the partial sums.
__global__ void total_kernel(int count, const double* partials, double* out) {
  __shared__ double sums[kThreads];
  double sum = 0;
  for (int i = threadIdx.x; i < count; i += kThreads) sum += partials[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = sums[0];
}

// Each lane sums one column; warps split the partials and are added in a fixed order.
__global__ void add_partials_kernel(Partials p, std::int64_t columns) {
  constexpr int kWarps = 16;
  __shared__ float sums[kWarps][kWarp];
  const int lane = lane_of_thread(), warp = threadIdx.x / kWarp;
  const std::int64_t column = std::int64_t{blockIdx.x} * kWarp + lane;
  float sum = 0;
  if (column < columns) {
#pragma unroll 8
    for (std::int64_t i = warp; i < p.count; i += kWarps) sum += p.partials[i * p.stride + column];
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= columns) return;
  float* out = column < p.width ? p.out : p.second_out;
  if (out == nullptr) return;
  out += column < p.width ? column : column - p.width;
  float total = *out;
  for (int w = 0; w < kWarps; ++w) total += sums[w][lane];
  *out = total;
}

}  // namespace

void add_partials(CudaContext& ctx, Partials p) {
  if (p.out == nullptr && p.second_out == nullptr) return;
  if (p.stride == 0) p.stride = p.width;
  const std::int64_t columns = p.second_out != nullptr ? 2 * p.width : p.width;
  add_partials_kernel<<<blocks_for(columns, kWarp), 16 * kWarp, 0, ctx.stream()>>>(p, columns);
  check_launch("add_partials");
}

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Sum<T>& p) {
  constexpr std::int64_t kMaxPartials = 1056, kElementsPerPartial = 2048;
  const unsigned partials = static_cast<unsigned>(
      std::clamp<std::int64_t>(div_ceil(p.count, kElementsPerPartial), 1, kMaxPartials));
  const ScratchMemory scratch(ctx.arena(), partials * sizeof(double));
  partial_sums_kernel<<<partials, kThreads, 0, ctx.stream()>>>(p.count, p.squares, native(p.x),
                                                               scratch.as<double>());
  total_kernel<<<1, kThreads, 0, ctx.stream()>>>(static_cast<int>(partials), scratch.as<double>(),
                                                 p.out);
  check_launch(p.name());
}
template void compute<Cuda>(CudaContext&, const Sum<float>&);
template void compute<Cuda>(CudaContext&, const Sum<BFloat16>&);

}  // namespace nunchi::kernels
