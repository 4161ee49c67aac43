// A warp owns a row and keeps it in registers from the sum to the result if the row has at most
// 2,048 columns; wider or unaligned rows are read again.
//
// The grid has as many blocks as run at once. Each warp loops over rows and prefetches the next
// one.
#include "nunchi/kernels/norm.h"

#include "nunchi/kernels/cuda/norm/norm_common.h"

namespace nunchi::kernels {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;

// Blocks per multiprocessor that the registers allow.
template <class N, int Chunks>
constexpr int kBlocksPerMultiprocessor = Chunks * sizeof(N) <= 6   ? 3
                                         : Chunks * sizeof(N) <= 8 ? 2
                                                                   : 1;

// One lane's columns of a row, loaded while the previous row is computed.
template <class N, int Chunks>
struct PrefetchedRow {
  Packed8<N> residual[Chunks], branch[Chunks];
  DropoutRow dropout_row;
};

// A lane's first column is `offset` elements into the matrices; its other columns are kChunk apart.
template <class N, int Chunks>
__device__ void prefetch(const ResidualNorm<N>& p, const DropoutParameters& dropout,
                         std::int64_t row, std::int64_t offset, int lane,
                         PrefetchedRow<N, Chunks>& in) {
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    if (c * kChunk + lane * 8 >= p.width) continue;
    load_once(p.residual + offset + c * kChunk, in.residual[c]);
    if (p.branch != nullptr) load_once(p.branch + offset + c * kChunk, in.branch[c]);
  }
  in.dropout_row = dropout_row_of(p.rows, dropout, row);
}

// x = residual + dropout(branch), rounded to the type in which it is stored.
template <class N, int Chunks>
__device__ void sum_row(const ResidualNorm<N>& p, const DropoutParameters& dropout, philox::Key key,
                        std::int64_t offset, int lane, const PrefetchedRow<N, Chunks>& in,
                        float (&x)[Chunks][8]) {
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    const int column = c * kChunk + lane * 8;
    if (column >= p.width) {
#pragma unroll
      for (int j = 0; j < 8; ++j) x[c][j] = 0;
      continue;
    }
    unpack(in.residual[c], x[c]);
    if (p.branch == nullptr) continue;
    float branch[8];
    unpack(in.branch[c], branch);
    if (dropout.active()) {
      float factor[8];
      compute_dropout_factors(dropout, key, static_cast<std::uint32_t>(column),
                              in.dropout_row.position, in.dropout_row.sentence, factor);
#pragma unroll
      for (int j = 0; j < 8; ++j) branch[j] *= factor[j];
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) x[c][j] = to_float(from_float<N>(x[c][j] + branch[j]));
    store8(p.sum + offset + c * kChunk, x[c]);
  }
}

template <class N, int Chunks>
__device__ void normalise_row(const ResidualNorm<N>& p, std::int64_t row, std::int64_t offset,
                              int lane, const float (&x)[Chunks][8]) {
  const float inverse = 1.0f / static_cast<float>(p.width);
  float total = 0, squares = 0;
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
#pragma unroll
    for (int j = 0; j < 8; ++j) total += x[c][j];
  }
  const float mean = p.kind == NormKind::layer ? warp_sum(total) * inverse : 0.0f;
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    if (c * kChunk + lane * 8 >= p.width) continue;
#pragma unroll
    for (int j = 0; j < 8; ++j) squares += (x[c][j] - mean) * (x[c][j] - mean);
  }
  const float rstd = 1.0f / sqrtf(warp_sum(squares) * inverse + static_cast<float>(p.epsilon));
  if (lane == 0) {
    p.mean[row] = mean;
    p.rstd[row] = rstd;
  }
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    const int column = c * kChunk + lane * 8;
    if (column >= p.width) continue;
    float out[8], beta[8] = {};
    load8(p.gamma + column, out);
    if (p.beta != nullptr) load8(p.beta + column, beta);
#pragma unroll
    for (int j = 0; j < 8; ++j) out[j] = (x[c][j] - mean) * rstd * out[j] + beta[j];
    store8(p.out + offset + c * kChunk, out);
  }
}

template <class N, int Chunks>
__device__ void clear_row(const ResidualNorm<N>& p, std::int64_t row, std::int64_t offset,
                          int lane) {
  const float zero[8] = {};
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    if (c * kChunk + lane * 8 >= p.width) continue;
    if (p.branch != nullptr) store8(p.sum + offset + c * kChunk, zero);
    store8(p.out + offset + c * kChunk, zero);
  }
  if (lane == 0) p.mean[row] = p.rstd[row] = 0;
}

// Each lane holds Chunks times eight columns; rows have at most Chunks * kChunk columns.
template <class N, int Chunks>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor<N, Chunks>)
    forward_kernel(const ResidualNorm<N> p, const DropoutParameters dropout) {
  const int lane = lane_of_thread(), warp = threadIdx.x / kWarp;
  const std::int64_t step = std::int64_t{gridDim.x} * kWarps;
  std::int64_t row = std::int64_t{blockIdx.x} * kWarps + warp, offset = row * p.width + lane * 8;
  if (row >= p.rows.capacity) return;
  wait_for_previous_kernel();
  PrefetchedRow<N, Chunks> next;
  prefetch(p, dropout, row, offset, lane, next);
  const std::int64_t count = real_rows(p.rows);
  const philox::Key key = dropout.active() ? philox::key_of(*dropout.key) : philox::Key{};
#pragma unroll 1
  for (; row < count; row += step, offset += step * p.width) {
    float x[Chunks][8];
    sum_row(p, dropout, hidden_from_optimizer(key), offset, lane, next, x);
    if (row + step < count) prefetch(p, dropout, row + step, offset + step * p.width, lane, next);
    normalise_row(p, row, offset, lane, x);
  }
  for (; row < p.rows.capacity; row += step, offset += step * p.width) {
    clear_row<N, Chunks>(p, row, offset, lane);
  }
}

// Any width: lanes stride over the columns and read them again in each pass.
template <class N>
__global__ void __launch_bounds__(kThreads)
    forward_any_kernel(const ResidualNorm<N> p, const DropoutParameters dropout) {
  const int lane = lane_of_thread();
  const std::int64_t row = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  if (row >= p.rows.capacity) return;
  wait_for_previous_kernel();
  const bool real = row < real_rows(p.rows);
  const std::int64_t offset = row * p.width;
  const philox::Key key = dropout.active() ? philox::key_of(*dropout.key) : philox::Key{};
  const N* x = p.branch != nullptr ? p.sum + offset : p.residual + offset;
  float total = 0;
  for (std::int64_t c = lane; c < p.width; c += kWarp) {
    float value = real ? to_float(p.residual[offset + c]) : 0.0f;
    if (p.branch != nullptr) {
      if (real) {
        value += to_float(p.branch[offset + c]) * dropout_factor(dropout, key, p.rows, row, c);
      }
      p.sum[offset + c] = from_float<N>(value);
      value = to_float(p.sum[offset + c]);
    }
    total += value;
  }
  const float inverse = 1.0f / static_cast<float>(p.width);
  const float mean = p.kind == NormKind::layer ? warp_sum(total) * inverse : 0.0f;
  float squares = 0;
  for (std::int64_t c = lane; c < p.width; c += kWarp) {
    const float centred = to_float(x[c]) - mean;
    squares += centred * centred;
  }
  const float rstd = 1.0f / sqrtf(warp_sum(squares) * inverse + static_cast<float>(p.epsilon));
  for (std::int64_t c = lane; c < p.width; c += kWarp) {
    const float normal = (to_float(x[c]) - mean) * rstd * to_float(p.gamma[c]);
    const float beta = p.beta != nullptr ? to_float(p.beta[c]) : 0.0f;
    p.out[offset + c] = from_float<N>(real ? normal + beta : 0.0f);
  }
  if (lane == 0) {
    p.mean[row] = real ? mean : 0.0f;
    p.rstd[row] = real ? rstd : 0.0f;
  }
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ResidualNorm<T>& p) {
  using N = Native<T>;
  if (p.rows.capacity == 0) return;
  const ResidualNorm<N> arguments = native(p);
  const DropoutParameters dropout(p.dropout);
  const unsigned blocks = blocks_for(p.rows.capacity, kWarps);
  const auto processors = static_cast<unsigned>(ctx.multiprocessors());
  const bool aligned =
      all_rows_aligned(p.width, arguments.residual, arguments.branch, arguments.gamma,
                       arguments.beta, arguments.sum, arguments.out);
  dispatch_width(p.width, aligned, [&]<int Chunks>() {
    if constexpr (Chunks == 0) {
      launch_overlapped(ctx, p.name(), forward_any_kernel<N>, {blocks, kThreads}, arguments,
                        dropout);
    } else {
      const unsigned resident = std::min(blocks, processors * kBlocksPerMultiprocessor<N, Chunks>);
      launch_overlapped(ctx, p.name(), forward_kernel<N, Chunks>, {resident, kThreads}, arguments,
                        dropout);
    }
  });
  check_launch(p.name());
}
template void compute<Cuda>(CudaContext&, const ResidualNorm<float>&);
template void compute<Cuda>(CudaContext&, const ResidualNorm<BFloat16>&);

}  // namespace nunchi::kernels
