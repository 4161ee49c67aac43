// Sums over rows in one launch. A block sums a stripe of rows for some columns; the last block to
// finish for those columns adds the stripes' sums in order. The number of stripes depends only on
// the sizes and the GPU.
#include "nunchi/kernels/cuda/common/column_sums.h"
#include "nunchi/kernels/cuda/common/device.h"
#include "nunchi/kernels/reduce.h"

namespace nunchi::kernels {
namespace {

constexpr int kWarps = 16;
constexpr int kThreads = kWarps * kWarp;
constexpr int kBlocksPerMultiprocessor = 2;

template <class N>
struct ColumnSumArguments {
  std::int64_t rows, width;
  std::int64_t stripe_rows;  // rows per stripe
  const N* x;
  const N* y;       // if gated: relu's output; x is summed only where y is positive
  N* gated;         // if gated: receives x with zeros where y is not positive; may be x
  float* partials;  // [stripes, width]
  unsigned* done;   // [groups of columns] finished stripes; zero before and after a launch
  float* out;
};

// A lane's Width columns of a row in their storage type.
template <class N, int Width>
struct Columns {
  Packed8<N> eight;
  __device__ void load(const N* from) { load8(from, eight); }
  __device__ void values(float (&x)[8]) const { unpack(eight, x); }
  __device__ static void store(N* to, const float (&x)[8]) { store8(to, x); }
};
template <class N>
struct Columns<N, 1> {
  N one;
  __device__ void load(const N* from) { one = *from; }
  __device__ void values(float (&x)[1]) const { x[0] = to_float(one); }
  __device__ static void store(N* to, const float (&x)[1]) { *to = from_float<N>(x[0]); }
};

// Sums a warp's rows of the stripe, with several rows prefetched at a time.
template <class N, int Width, bool Gated>
__device__ void sum_rows(const ColumnSumArguments<N>& p, std::int64_t first, std::int64_t end,
                         std::int64_t column, float (&sum)[Width]) {
  constexpr int kPrefetch = (Gated ? 8 : 16) / sizeof(N);
#pragma unroll 1
  for (std::int64_t r = first; r < end; r += kPrefetch * kWarps) {
    Columns<N, Width> x[kPrefetch], y[Gated ? kPrefetch : 1];
#pragma unroll
    for (int i = 0; i < kPrefetch; ++i) {
      const std::int64_t row = r + i * kWarps, element = row * p.width + column;
      if (row >= end) continue;
      x[i].load(p.x + element);
      if constexpr (Gated) y[i].load(p.y + element);
    }
#pragma unroll
    for (int i = 0; i < kPrefetch; ++i) {
      const std::int64_t row = r + i * kWarps;
      if (row >= end) continue;
      float values[Width];
      x[i].values(values);
      if constexpr (Gated) {
        float gate[Width];
        y[i].values(gate);
#pragma unroll
        for (int j = 0; j < Width; ++j) values[j] = gate[j] > 0 ? values[j] : 0.0f;
        Columns<N, Width>::store(p.gated + row * p.width + column, values);
      }
#pragma unroll
      for (int j = 0; j < Width; ++j) sum[j] += values[j];
    }
  }
}

template <class N, int Width, bool Gated>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor)
    column_sum_kernel(ColumnSumArguments<N> p) {
  constexpr int kColumns = kWarp * Width;
  // Four words of padding: neither the stores of lanes nor the reads of columns have bank
  // conflicts.
  __shared__ float sums[kWarps][Width][kWarp + 4];
  __shared__ bool is_last_block;
  const int lane = lane_of_thread(), warp = threadIdx.x / kWarp;
  const std::int64_t group = std::int64_t{blockIdx.x} * kColumns, column = group + lane * Width;
  const std::int64_t begin = blockIdx.y * p.stripe_rows, end = min(begin + p.stripe_rows, p.rows);
  float sum[Width] = {};
  if (column < p.width) sum_rows<N, Width, Gated>(p, begin + warp, end, column, sum);
#pragma unroll
  for (int j = 0; j < Width; ++j) sums[warp][j][lane] = sum[j];
  __syncthreads();
  if (threadIdx.x < kColumns && group + threadIdx.x < p.width) {
    float total = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) total += sums[w][threadIdx.x % Width][threadIdx.x / Width];
    p.partials[blockIdx.y * p.width + group + threadIdx.x] = total;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    is_last_block = atomicAdd(p.done + blockIdx.x, 1u) == gridDim.y - 1;
    __threadfence();
  }
  __syncthreads();
  if (!is_last_block) return;

  // Each thread adds four neighbouring columns of every kThreadGroups-th stripe.
  constexpr int kColumnsPerThread = Width == 8 ? 4 : 1;
  constexpr int kThreadGroups = kThreads * kColumnsPerThread / kColumns;
  float* totals = &sums[0][0][0];  // [kThreadGroups, kColumns]
  static_assert(kThreadGroups * kColumns <= kWarps * Width * (kWarp + 4));
  const int thread_group = threadIdx.x * kColumnsPerThread / kColumns,
            thread_column = threadIdx.x * kColumnsPerThread % kColumns;
  float total[kColumnsPerThread] = {};
  constexpr int kPrefetch = 8;
#pragma unroll 1
  for (unsigned first = thread_group; first < gridDim.y; first += kPrefetch * kThreadGroups) {
    float parts[kPrefetch][kColumnsPerThread] = {};
#pragma unroll
    for (int i = 0; i < kPrefetch; ++i) {
      const unsigned stripe = first + i * kThreadGroups;
      if (stripe >= gridDim.y || group + thread_column >= p.width) continue;
      const float* from = p.partials + stripe * p.width + group + thread_column;
      if constexpr (kColumnsPerThread == 4) {
        const float4 four = __ldcg(reinterpret_cast<const float4*>(from));
        parts[i][0] = four.x, parts[i][1] = four.y, parts[i][2] = four.z, parts[i][3] = four.w;
      } else {
        parts[i][0] = __ldcg(from);
      }
    }
#pragma unroll
    for (int i = 0; i < kPrefetch; ++i) {
#pragma unroll
      for (int j = 0; j < kColumnsPerThread; ++j) total[j] += parts[i][j];
    }
  }
#pragma unroll
  for (int j = 0; j < kColumnsPerThread; ++j)
    totals[thread_group * kColumns + thread_column + j] = total[j];
  __syncthreads();
  if (threadIdx.x < kColumns && group + threadIdx.x < p.width) {
    float result = p.out[group + threadIdx.x];
#pragma unroll
    for (int t = 0; t < kThreadGroups; ++t) result += totals[t * kColumns + threadIdx.x];
    p.out[group + threadIdx.x] = result;
  }
  if (threadIdx.x == 0) p.done[blockIdx.x] = 0;
}

// Counters of finished stripes; each launch leaves them at zero.
class Counters {
 public:
  ~Counters() {
    if (arena_ != nullptr) arena_->release(memory_);
  }
  // At least `count` counters.
  unsigned* get(CudaContext& ctx, std::size_t count) {
    if (count > count_) {
      if (arena_ != nullptr) arena_->release(memory_);
      arena_ = &ctx.arena();
      count_ = std::max<std::size_t>(2 * count, 1024);
      memory_ = arena_->allocate(count_ * sizeof(unsigned));
      check_cuda(cudaMemsetAsync(memory_, 0, count_ * sizeof(unsigned), ctx.stream()), "counters");
    }
    return reinterpret_cast<unsigned*>(memory_);
  }

 private:
  Arena* arena_ = nullptr;
  std::byte* memory_ = nullptr;
  std::size_t count_ = 0;
};

template <bool Gated, class N>
void launch(CudaContext& ctx, ColumnSumArguments<N> arguments) {
  const auto launch_width = [&]<int Width>() {
    const unsigned groups = blocks_for(arguments.width, kWarp * Width);
    // A stripe has enough rows for all prefetches of a block.
    constexpr std::int64_t kMinRows = kWarps * 8;
    const std::int64_t stripes =
        std::clamp<std::int64_t>(ctx.multiprocessors() * kBlocksPerMultiprocessor / groups, 1,
                                 (arguments.rows + kMinRows - 1) / kMinRows);
    arguments.stripe_rows = (arguments.rows + stripes - 1) / stripes;
    const dim3 grid(groups, blocks_for(arguments.rows, arguments.stripe_rows));
    const ScratchMemory partials(
        ctx.arena(), grid.y * static_cast<std::size_t>(arguments.width) * sizeof(float));
    arguments.partials = partials.as<float>();
    arguments.done = ctx.cache<Counters>().get(ctx, groups);
    column_sum_kernel<N, Width, Gated><<<grid, kThreads, 0, ctx.stream()>>>(arguments);
  };
  if (rows_are_aligned(arguments.x, arguments.width) &&
      (!Gated || rows_are_aligned(arguments.y, arguments.width))) {
    launch_width.template operator()<8>();
  } else {
    launch_width.template operator()<1>();
  }
  check_launch("column_sum");
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ColumnSum<T>& p) {
  if (p.rows * p.width == 0) return;
  launch<false>(ctx, ColumnSumArguments<Native<T>>{
                         .rows = p.rows, .width = p.width, .x = native(p.x), .out = p.out});
}
template void compute<Cuda>(CudaContext&, const ColumnSum<float>&);
template void compute<Cuda>(CudaContext&, const ColumnSum<BFloat16>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ReluColumnSum<T>& p) {
  if (p.rows * p.width == 0) return;
  launch<true>(ctx, ColumnSumArguments<Native<T>>{.rows = p.rows,
                                                  .width = p.width,
                                                  .x = native(p.d),
                                                  .y = native(p.y),
                                                  .gated = native(p.d),
                                                  .out = p.out});
}
template void compute<Cuda>(CudaContext&, const ReluColumnSum<float>&);
template void compute<Cuda>(CudaContext&, const ReluColumnSum<BFloat16>&);

}  // namespace nunchi::kernels
