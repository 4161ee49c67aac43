// The norm's backward pass. A warp owns a row and keeps it in registers if the row has at most
// 2,048 columns; wider or unaligned rows are read again.
//
// The grid has as many blocks as run at once. Each warp loops over rows and prefetches the next
// one, so there are few partial sums of d_gamma and d_beta, and their order depends only on the
// capacity and the GPU.
#include "nunchi/kernels/cuda/common/column_sums.h"
#include "nunchi/kernels/cuda/norm/norm_common.h"
#include "nunchi/kernels/norm.h"

namespace nunchi::kernels {
namespace {

// Values computed for a launch.
struct Launch {
  DropoutParameters dropout;
  float* partials;  // [count, 2, C] partial sums of d_gamma and d_beta
};

// Fits the registers of one block per multiprocessor: the number of warps, and whether the next row
// is prefetched entirely, without d_sum, or not at all.
template <class N, int Chunks>
struct RegisterBudget {
  static constexpr int kWarps = Chunks * sizeof(N) <= 4 ? 16 : 8;
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr bool kPrefetch = Chunks * sizeof(N) <= 8;
  static constexpr bool kPrefetchAll = kWarps == 8 && Chunks * sizeof(N) <= 6;
};

// One lane's columns of a row, loaded while the previous row is computed.
template <class N, int Chunks>
struct PrefetchedRow {
  Packed8<N> sum[Chunks], d_out[Chunks], d_sum[Chunks];
  float mean, rstd;
  DropoutRow dropout_row;
};

// A lane's first column is `offset` elements into the matrices; its other columns are kChunk apart.
template <class N, int Chunks>
__device__ void prefetch(const ResidualNormBackward<N>& p, const Launch& launch, std::int64_t row,
                         std::int64_t offset, int lane, PrefetchedRow<N, Chunks>& in) {
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    if (c * kChunk + lane * 8 >= p.width) continue;
    load_once(p.sum + offset + c * kChunk, in.sum[c]);
    load_once(p.d_out + offset + c * kChunk, in.d_out[c]);
  }
  in.mean = p.mean[row];
  in.rstd = p.rstd[row];
  in.dropout_row = dropout_row_of(p.rows, launch.dropout, row);
}
template <class N, int Chunks>
__device__ void prefetch_d_sum(const ResidualNormBackward<N>& p, std::int64_t offset, int lane,
                               PrefetchedRow<N, Chunks>& in) {
  if (p.d_sum == nullptr) return;
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    if (c * kChunk + lane * 8 < p.width) load_once(p.d_sum + offset + c * kChunk, in.d_sum[c]);
  }
}

// Values shared by all rows.
struct RowConstants {
  philox::Key key;
  float inverse_width;
};

// The row's gradients, and its contribution to d_gamma and d_beta.
template <class N, int Chunks>
__device__ void row_backward(const ResidualNormBackward<N>& p, const Launch& launch,
                             const RowConstants& constants, std::int64_t offset, int lane,
                             const PrefetchedRow<N, Chunks>& in, float (&d_gamma)[Chunks][8],
                             float (&d_beta)[Chunks][8]) {
  float normal[Chunks][8], d_normal[Chunks][8];
  float gradient_sum = 0, product_sum = 0;
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    const int column = c * kChunk + lane * 8;
    if (column >= p.width) continue;
    float gamma[8];
    load8(p.gamma + column, gamma);
    unpack(in.sum[c], normal[c]);
    unpack(in.d_out[c], d_normal[c]);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      normal[c][j] = (normal[c][j] - in.mean) * in.rstd;
      d_gamma[c][j] += d_normal[c][j] * normal[c][j];
      d_beta[c][j] += d_normal[c][j];
      d_normal[c][j] *= gamma[j];
      gradient_sum += d_normal[c][j];
      product_sum += d_normal[c][j] * normal[c][j];
    }
  }
  gradient_sum = warp_sum(gradient_sum) * constants.inverse_width;
  const float mean_product = warp_sum(product_sum) * constants.inverse_width;
  const float mean_gradient = p.kind == NormKind::layer ? gradient_sum : 0.0f;
  const philox::Key key = hidden_from_optimizer(constants.key);
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    const int column = c * kChunk + lane * 8;
    const std::int64_t element = offset + c * kChunk;
    if (column >= p.width) continue;
    float d[8], other[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      d[j] = in.rstd * (d_normal[c][j] - mean_gradient - normal[c][j] * mean_product);
    }
    if (p.d_sum != nullptr) {
      unpack(in.d_sum[c], other);
#pragma unroll
      for (int j = 0; j < 8; ++j) d[j] += other[j];
    }
    if (p.d_branch != nullptr) {
      if (launch.dropout.active()) {
        compute_dropout_factors(launch.dropout, key, static_cast<std::uint32_t>(column),
                                in.dropout_row.position, in.dropout_row.sentence, other);
#pragma unroll
        for (int j = 0; j < 8; ++j) other[j] *= d[j];
        store8(p.d_branch + element, other);
      } else {
        store8(p.d_branch + element, d);
      }
    }
    if (p.d_residual != nullptr) {
      if (p.accumulate_residual) {
        load8(p.d_residual + element, other);
#pragma unroll
        for (int j = 0; j < 8; ++j) d[j] += other[j];
      }
      store8(p.d_residual + element, d);
    }
  }
}

template <class N, int Chunks>
__device__ void clear_row(const ResidualNormBackward<N>& p, std::int64_t offset, int lane) {
  const float zero[8] = {};
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    if (c * kChunk + lane * 8 >= p.width) continue;
    if (p.d_branch != nullptr) store8(p.d_branch + offset + c * kChunk, zero);
    if (p.d_residual != nullptr && !p.accumulate_residual) {
      store8(p.d_residual + offset + c * kChunk, zero);
    }
  }
}

// A block's partial sums of d_gamma and d_beta: adds its warps in order, one chunk of columns at a
// time.
template <int Chunks, int Warps>
__device__ void store_partial(std::int64_t width, const float (&d_gamma)[Chunks][8],
                              const float (&d_beta)[Chunks][8], float* partial) {
  // Four words of padding: neither the stores of lanes nor the reads of columns have bank
  // conflicts.
  __shared__ float sums[2][Warps][8][kWarp + 4];
  const int lane = lane_of_thread(), warp = threadIdx.x / kWarp;
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      sums[0][warp][j][lane] = d_gamma[c][j];
      sums[1][warp][j][lane] = d_beta[c][j];
    }
    __syncthreads();
#pragma unroll
    for (int i = threadIdx.x; i < 2 * kChunk; i += Warps * kWarp) {
      const int which = i / kChunk, column = c * kChunk + i % kChunk;
      float total = 0;
#pragma unroll
      for (int w = 0; w < Warps; ++w) total += sums[which][w][i % 8][i % kChunk / 8];
      if (column < width) partial[which * width + column] = total;
    }
    __syncthreads();
  }
}

template <class N, int Chunks>
__global__ void __launch_bounds__(RegisterBudget<N, Chunks>::kThreads, 1)
    backward_kernel(const ResidualNormBackward<N> p, const Launch launch) {
  constexpr int kWarps = RegisterBudget<N, Chunks>::kWarps;
  constexpr bool kPrefetch = RegisterBudget<N, Chunks>::kPrefetch,
                 kPrefetchAll = RegisterBudget<N, Chunks>::kPrefetchAll;
  const int lane = lane_of_thread(), warp = threadIdx.x / kWarp;
  const std::int64_t step = std::int64_t{gridDim.x} * kWarps;
  std::int64_t row = std::int64_t{blockIdx.x} * kWarps + warp, offset = row * p.width + lane * 8;
  PrefetchedRow<N, Chunks> next;
  if (kPrefetch && row < p.rows.capacity) prefetch(p, launch, row, offset, lane, next);
  if (kPrefetchAll && row < p.rows.capacity) prefetch_d_sum(p, offset, lane, next);
  const std::int64_t count = real_rows(p.rows);
  const RowConstants constants{
      launch.dropout.active() ? philox::key_of(*launch.dropout.key) : philox::Key{},
      1.0f / static_cast<float>(p.width)};
  float d_gamma[Chunks][8] = {}, d_beta[Chunks][8] = {};
#pragma unroll 1
  for (; row < count; row += step, offset += step * p.width) {
    if constexpr (!kPrefetch) prefetch(p, launch, row, offset, lane, next);
    PrefetchedRow<N, Chunks> current = next;
    if constexpr (!kPrefetchAll) prefetch_d_sum(p, offset, lane, current);
    if (kPrefetch && row + step < count) {
      prefetch(p, launch, row + step, offset + step * p.width, lane, next);
      if constexpr (kPrefetchAll) prefetch_d_sum(p, offset + step * p.width, lane, next);
    }
    row_backward(p, launch, constants, offset, lane, current, d_gamma, d_beta);
  }
  for (; row < p.rows.capacity; row += step, offset += step * p.width) {
    clear_row<N, Chunks>(p, offset, lane);
  }
  store_partial<Chunks, kWarps>(p.width, d_gamma, d_beta,
                                launch.partials + blockIdx.x * 2 * p.width);
}

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr std::int64_t kRowsPerPartial = 64;

// Any width: a warp owns a row. gamma_partials_kernel computes d_gamma and d_beta.
template <class N>
__global__ void __launch_bounds__(kThreads)
    backward_any_kernel(const ResidualNormBackward<N> p, const Launch launch) {
  const int lane = lane_of_thread();
  const std::int64_t row = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  if (row >= p.rows.capacity) return;
  const bool real = row < real_rows(p.rows);
  const std::int64_t offset = row * p.width;
  const philox::Key key =
      launch.dropout.active() ? philox::key_of(*launch.dropout.key) : philox::Key{};
  const float mean = real ? p.mean[row] : 0.0f, rstd = real ? p.rstd[row] : 0.0f;
  float gradient_sum = 0, product_sum = 0;
  for (std::int64_t c = lane; real && c < p.width; c += kWarp) {
    const float normal = (to_float(p.sum[offset + c]) - mean) * rstd;
    const float d_normal = to_float(p.d_out[offset + c]) * to_float(p.gamma[c]);
    gradient_sum += d_normal;
    product_sum += d_normal * normal;
  }
  const float inverse = 1.0f / static_cast<float>(p.width);
  const float mean_gradient = p.kind == NormKind::layer ? warp_sum(gradient_sum) * inverse : 0.0f;
  const float mean_product = warp_sum(product_sum) * inverse;
  for (std::int64_t c = lane; c < p.width; c += kWarp) {
    float d = 0, d_branch_value = 0;
    if (real) {
      const float normal = (to_float(p.sum[offset + c]) - mean) * rstd;
      const float d_normal = to_float(p.d_out[offset + c]) * to_float(p.gamma[c]);
      d = rstd * (d_normal - mean_gradient - normal * mean_product);
      if (p.d_sum != nullptr) d += to_float(p.d_sum[offset + c]);
      if (p.d_branch != nullptr)
        d_branch_value = d * dropout_factor(launch.dropout, key, p.rows, row, c);
    }
    if (p.d_branch != nullptr) p.d_branch[offset + c] = from_float<N>(d_branch_value);
    if (p.d_residual == nullptr) continue;
    if (p.accumulate_residual) d += to_float(p.d_residual[offset + c]);
    p.d_residual[offset + c] = from_float<N>(d);
  }
}

template <class N>
__global__ void __launch_bounds__(kThreads)
    gamma_partials_kernel(const ResidualNormBackward<N> p, const Launch launch) {
  const std::int64_t column = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (column >= p.width) return;
  const std::int64_t first = std::int64_t{blockIdx.y} * kRowsPerPartial;
  const std::int64_t end = min(first + kRowsPerPartial, real_rows(p.rows));
  float d_gamma = 0, d_beta = 0;
  for (std::int64_t row = first; row < end; ++row) {
    const float d_out = to_float(p.d_out[row * p.width + column]);
    d_gamma += d_out * (to_float(p.sum[row * p.width + column]) - p.mean[row]) * p.rstd[row];
    d_beta += d_out;
  }
  float* partial = launch.partials + blockIdx.y * 2 * p.width;
  partial[column] = d_gamma;
  partial[p.width + column] = d_beta;
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ResidualNormBackward<T>& p) {
  using N = Native<T>;
  if (p.rows.capacity == 0) return;
  const ResidualNormBackward<N> arguments = native(p);
  Launch launch{.dropout = DropoutParameters(p.dropout), .partials = nullptr};
  const bool aligned = all_rows_aligned(p.width, arguments.sum, arguments.gamma, arguments.d_out,
                                        arguments.d_sum, arguments.d_residual, arguments.d_branch);
  dispatch_width(p.width, aligned, [&]<int Chunks>() {
    unsigned partials = blocks_for(p.rows.capacity, kRowsPerPartial);
    if constexpr (Chunks > 0) {
      partials = std::min(blocks_for(p.rows.capacity, RegisterBudget<N, Chunks>::kWarps),
                          static_cast<unsigned>(ctx.multiprocessors()));
    }
    const ScratchMemory scratch(ctx.arena(),
                                partials * 2 * static_cast<std::size_t>(p.width) * sizeof(float));
    launch.partials = scratch.as<float>();
    if constexpr (Chunks == 0) {
      backward_any_kernel<N>
          <<<blocks_for(p.rows.capacity, kWarps), kThreads, 0, ctx.stream()>>>(arguments, launch);
      const dim3 grid(blocks_for(p.width, kThreads), partials);
      gamma_partials_kernel<N><<<grid, kThreads, 0, ctx.stream()>>>(arguments, launch);
    } else {
      backward_kernel<N, Chunks>
          <<<partials, RegisterBudget<N, Chunks>::kThreads, 0, ctx.stream()>>>(arguments, launch);
    }
    check_launch(p.name());
    add_partials(ctx, {.count = partials,
                       .width = p.width,
                       .stride = 2 * p.width,
                       .partials = launch.partials,
                       .out = p.d_gamma,
                       .second_out = p.d_beta});
  });
}
template void compute<Cuda>(CudaContext&, const ResidualNormBackward<float>&);
template void compute<Cuda>(CudaContext&, const ResidualNormBackward<BFloat16>&);

}  // namespace nunchi::kernels
