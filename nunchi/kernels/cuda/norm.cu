// A warp owns a row: its lanes keep the row's numbers in registers from the sum to the result,
// where the row is at most kWidest columns wide; wider or uneven rows are read again instead.
#include "nunchi/kernels/norm.h"

#include "nunchi/kernels/cuda/device.h"
#include "nunchi/kernels/cuda/reduce.h"

namespace nunchi::kernels::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;

template <class N>
struct Forward {
  NormKind kind;
  Rows rows;
  std::int64_t width;
  float epsilon;
  DropoutDraws draws;
  const N *residual, *branch, *gamma, *beta;
  N *sum, *out;
  float *mean, *rstd;
};

template <class N>
struct Backward {
  NormKind kind;
  Rows rows;
  std::int64_t width;
  DropoutDraws draws;
  const N *sum, *gamma;
  const float *mean, *rstd;
  const N *d_out, *d_sum;
  N *d_residual, *d_branch;
  bool accumulate_residual;
  float* workspace;
};

// residual + dropout(branch) of eight columns.
template <class N>
__device__ void summed_columns(const Forward<N>& p, philox::Key key, std::int64_t row,
                               std::int64_t column, float (&x)[8]) {
  load8(p.residual + row * p.width + column, x);
  if (p.branch == nullptr) return;
  float branch[8];
  load8(p.branch + row * p.width + column, branch);
  if (p.draws.threshold > 0) {
    float factor[8];
    keep_factors(p.draws, key, static_cast<std::uint32_t>(column),
                 static_cast<std::uint32_t>(p.rows.position[row]),
                 static_cast<std::uint32_t>(p.rows.sentence[row]), factor);
#pragma unroll
    for (int j = 0; j < 8; ++j) branch[j] *= factor[j];
  }
#pragma unroll
  for (int j = 0; j < 8; ++j) x[j] = to_float(from_float<N>(x[j] + branch[j]));
}

// Chunks of eight columns per lane; rows are at most Chunks * 256 columns wide.
template <class N, int Chunks>
__global__ void __launch_bounds__(kThreads) forward_kernel(Forward<N> p) {
  const int lane = threadIdx.x % kWarp;
  const std::int64_t row = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  if (row >= p.rows.capacity) return;
  const bool real = row < real_rows(p.rows);
  const philox::Key key = p.draws.threshold > 0 ? philox::key_of(*p.draws.key) : philox::Key{};
  float x[Chunks][8];
  float total = 0;
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    const std::int64_t column = (c * kWarp + lane) * 8;
    if (column >= p.width || !real) {
#pragma unroll
      for (int j = 0; j < 8; ++j) x[c][j] = 0;
      continue;
    }
    summed_columns(p, key, row, column, x[c]);
#pragma unroll
    for (int j = 0; j < 8; ++j) total += x[c][j];
  }
  const float inverse = 1.0f / static_cast<float>(p.width);
  const float mean = p.kind == NormKind::layer ? warp_sum(total) * inverse : 0.0f;
  float squares = 0;
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    if ((c * kWarp + lane) * 8 >= p.width) continue;
#pragma unroll
    for (int j = 0; j < 8; ++j) squares += (x[c][j] - mean) * (x[c][j] - mean);
  }
  const float rstd = 1.0f / sqrtf(warp_sum(squares) * inverse + p.epsilon);
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    const std::int64_t column = (c * kWarp + lane) * 8;
    if (column >= p.width) continue;
    if (p.branch != nullptr) store8(p.sum + row * p.width + column, x[c]);
    float gamma[8], beta[8] = {};
    load8(p.gamma + column, gamma);
    if (p.beta != nullptr) load8(p.beta + column, beta);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      gamma[j] = real ? (x[c][j] - mean) * rstd * gamma[j] + beta[j] : 0.0f;
    }
    store8(p.out + row * p.width + column, gamma);
  }
  if (lane == 0) {
    p.mean[row] = mean;
    p.rstd[row] = rstd;
  }
}

__device__ inline float keep_factor(const DropoutDraws& draws, philox::Key key, const Rows& rows,
                                    std::int64_t row, std::int64_t column) {
  if (draws.threshold == 0) return 1;
  float factor[8];
  keep_factors(draws, key, static_cast<std::uint32_t>(column / 8 * 8),
               static_cast<std::uint32_t>(rows.position[row]),
               static_cast<std::uint32_t>(rows.sentence[row]), factor);
  float mine = 0;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    if (j == column % 8) mine = factor[j];
  }
  return mine;
}

// Any width: lanes take columns in turn and read them again.
template <class N>
__global__ void __launch_bounds__(kThreads) forward_any_kernel(Forward<N> p) {
  const int lane = threadIdx.x % kWarp;
  const std::int64_t row = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  if (row >= p.rows.capacity) return;
  const bool real = row < real_rows(p.rows);
  const std::int64_t at = row * p.width;
  const philox::Key key = p.draws.threshold > 0 ? philox::key_of(*p.draws.key) : philox::Key{};
  const N* x = p.branch != nullptr ? p.sum + at : p.residual + at;
  float total = 0;
  for (std::int64_t c = lane; c < p.width; c += kWarp) {
    float value = real ? to_float(p.residual[at + c]) : 0.0f;
    if (p.branch != nullptr) {
      if (real) {
        value += to_float(p.branch[at + c]) * keep_factor(p.draws, key, p.rows, row, c);
      }
      p.sum[at + c] = from_float<N>(value);
      value = to_float(p.sum[at + c]);
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
  const float rstd = 1.0f / sqrtf(warp_sum(squares) * inverse + p.epsilon);
  for (std::int64_t c = lane; c < p.width; c += kWarp) {
    const float normal = (to_float(x[c]) - mean) * rstd * to_float(p.gamma[c]);
    const float beta = p.beta != nullptr ? to_float(p.beta[c]) : 0.0f;
    p.out[at + c] = from_float<N>(real ? normal + beta : 0.0f);
  }
  if (lane == 0) {
    p.mean[row] = real ? mean : 0.0f;
    p.rstd[row] = real ? rstd : 0.0f;
  }
}

// A block owns the rows of one partial sum of d_gamma and d_beta; its warps take them in turn.
template <class N, int Chunks>
__global__ void __launch_bounds__(kThreads) backward_kernel(Backward<N> p) {
  constexpr std::int64_t kRows = ResidualNormBackward<float>::kRowsPerPartial;
  extern __shared__ float sums[];  // [2, C]
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const std::int64_t count = real_rows(p.rows);
  const philox::Key key = p.draws.threshold > 0 ? philox::key_of(*p.draws.key) : philox::Key{};
  const float inverse = 1.0f / static_cast<float>(p.width);
  float d_gamma[Chunks][8] = {}, d_beta[Chunks][8] = {};
  const std::int64_t first = std::int64_t{blockIdx.x} * kRows;
  for (std::int64_t row = first + warp; row < min(first + kRows, p.rows.capacity); row += kWarps) {
    const std::int64_t at = row * p.width;
    if (row >= count) {
      const float zero[8] = {};
#pragma unroll
      for (int c = 0; c < Chunks; ++c) {
        const std::int64_t column = (c * kWarp + lane) * 8;
        if (column >= p.width) continue;
        if (p.d_branch != nullptr) store8(p.d_branch + at + column, zero);
        if (p.d_residual != nullptr && !p.accumulate_residual) {
          store8(p.d_residual + at + column, zero);
        }
      }
      continue;
    }
    const float mean = p.mean[row], rstd = p.rstd[row];
    float normal[Chunks][8], d_normal[Chunks][8];
    float of_gradient = 0, of_product = 0;
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
      const std::int64_t column = (c * kWarp + lane) * 8;
      if (column >= p.width) continue;
      float gamma[8];
      load8(p.sum + at + column, normal[c]);
      load8(p.d_out + at + column, d_normal[c]);
      load8(p.gamma + column, gamma);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        normal[c][j] = (normal[c][j] - mean) * rstd;
        d_gamma[c][j] += d_normal[c][j] * normal[c][j];
        d_beta[c][j] += d_normal[c][j];
        d_normal[c][j] *= gamma[j];
        of_gradient += d_normal[c][j];
        of_product += d_normal[c][j] * normal[c][j];
      }
    }
    const float mean_gradient = p.kind == NormKind::layer ? warp_sum(of_gradient) * inverse : 0.0f;
    const float mean_product = warp_sum(of_product) * inverse;
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
      const std::int64_t column = (c * kWarp + lane) * 8;
      if (column >= p.width) continue;
      float d[8], other[8];
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        d[j] = rstd * (d_normal[c][j] - mean_gradient - normal[c][j] * mean_product);
      }
      if (p.d_sum != nullptr) {
        load8(p.d_sum + at + column, other);
#pragma unroll
        for (int j = 0; j < 8; ++j) d[j] += other[j];
      }
      if (p.d_branch != nullptr) {
        if (p.draws.threshold > 0) {
          keep_factors(p.draws, key, static_cast<std::uint32_t>(column),
                       static_cast<std::uint32_t>(p.rows.position[row]),
                       static_cast<std::uint32_t>(p.rows.sentence[row]), other);
#pragma unroll
          for (int j = 0; j < 8; ++j) other[j] *= d[j];
          store8(p.d_branch + at + column, other);
        } else {
          store8(p.d_branch + at + column, d);
        }
      }
      if (p.d_residual != nullptr) {
        if (p.accumulate_residual) {
          load8(p.d_residual + at + column, other);
#pragma unroll
          for (int j = 0; j < 8; ++j) d[j] += other[j];
        }
        store8(p.d_residual + at + column, d);
      }
    }
  }
  // Warps add their parts one after another.
  for (int turn = 0; turn < kWarps; ++turn) {
    if (turn == warp) {
#pragma unroll
      for (int c = 0; c < Chunks; ++c) {
        const std::int64_t column = (c * kWarp + lane) * 8;
        if (column >= p.width) continue;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          float* to = sums + column + j;
          to[0] = turn == 0 ? d_gamma[c][j] : to[0] + d_gamma[c][j];
          to[p.width] = turn == 0 ? d_beta[c][j] : to[p.width] + d_beta[c][j];
        }
      }
    }
    __syncthreads();
  }
  for (int i = threadIdx.x; i < 2 * p.width; i += kThreads) {
    p.workspace[blockIdx.x * 2 * p.width + i] = sums[i];
  }
}

// Any width: a warp owns a row; partial sums of d_gamma and d_beta are made by columns afterwards.
template <class N>
__global__ void __launch_bounds__(kThreads) backward_any_kernel(Backward<N> p) {
  const int lane = threadIdx.x % kWarp;
  const std::int64_t row = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  if (row >= p.rows.capacity) return;
  const bool real = row < real_rows(p.rows);
  const std::int64_t at = row * p.width;
  const philox::Key key = p.draws.threshold > 0 ? philox::key_of(*p.draws.key) : philox::Key{};
  const float mean = real ? p.mean[row] : 0.0f, rstd = real ? p.rstd[row] : 0.0f;
  float of_gradient = 0, of_product = 0;
  for (std::int64_t c = lane; real && c < p.width; c += kWarp) {
    const float normal = (to_float(p.sum[at + c]) - mean) * rstd;
    const float d_normal = to_float(p.d_out[at + c]) * to_float(p.gamma[c]);
    of_gradient += d_normal;
    of_product += d_normal * normal;
  }
  const float inverse = 1.0f / static_cast<float>(p.width);
  const float mean_gradient = p.kind == NormKind::layer ? warp_sum(of_gradient) * inverse : 0.0f;
  const float mean_product = warp_sum(of_product) * inverse;
  for (std::int64_t c = lane; c < p.width; c += kWarp) {
    float d = 0, kept = 0;
    if (real) {
      const float normal = (to_float(p.sum[at + c]) - mean) * rstd;
      const float d_normal = to_float(p.d_out[at + c]) * to_float(p.gamma[c]);
      d = rstd * (d_normal - mean_gradient - normal * mean_product);
      if (p.d_sum != nullptr) d += to_float(p.d_sum[at + c]);
      if (p.d_branch != nullptr) kept = d * keep_factor(p.draws, key, p.rows, row, c);
    }
    if (p.d_branch != nullptr) p.d_branch[at + c] = from_float<N>(kept);
    if (p.d_residual == nullptr) continue;
    if (p.accumulate_residual) d += to_float(p.d_residual[at + c]);
    p.d_residual[at + c] = from_float<N>(d);
  }
}

template <class N>
__global__ void __launch_bounds__(kThreads) gamma_partials_kernel(Backward<N> p) {
  constexpr std::int64_t kRows = ResidualNormBackward<float>::kRowsPerPartial;
  const std::int64_t column = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (column >= p.width) return;
  const std::int64_t first = std::int64_t{blockIdx.y} * kRows;
  const std::int64_t end = min(first + kRows, real_rows(p.rows));
  float d_gamma = 0, d_beta = 0;
  for (std::int64_t row = first; row < end; ++row) {
    const float d_out = to_float(p.d_out[row * p.width + column]);
    d_gamma += d_out * (to_float(p.sum[row * p.width + column]) - p.mean[row]) * p.rstd[row];
    d_beta += d_out;
  }
  float* partial = p.workspace + blockIdx.y * 2 * p.width;
  partial[column] = d_gamma;
  partial[p.width + column] = d_beta;
}

// f.operator()<Chunks>() for rows of this width, or <0> where lanes cannot keep them.
template <class F>
void by_width(std::int64_t width, bool aligned, F&& f) {
  constexpr std::int64_t kLanesColumns = 8 * kWarp;
  if (!aligned || width % 8 != 0 || width > 8 * kLanesColumns) {
    f.template operator()<0>();
  } else if (width <= kLanesColumns) {
    f.template operator()<1>();
  } else if (width <= 2 * kLanesColumns) {
    f.template operator()<2>();
  } else if (width <= 4 * kLanesColumns) {
    f.template operator()<4>();
  } else {
    f.template operator()<8>();
  }
}

template <class N, class... More>
bool all_wide(std::int64_t width, const N* first, const More*... more) {
  return wide(first, width) && (... && wide(more, width));
}

template <class T>
void residual_norm(CudaContext& ctx, const ResidualNorm<T>& p) {
  using N = Native<T>;
  if (p.rows.capacity == 0) return;
  const Forward<N> job{.kind = p.kind,
                       .rows = p.rows,
                       .width = p.width,
                       .epsilon = static_cast<float>(p.epsilon),
                       .draws = DropoutDraws(p.dropout),
                       .residual = native(p.residual),
                       .branch = native(p.branch),
                       .gamma = native(p.gamma),
                       .beta = native(p.beta),
                       .sum = native(p.sum),
                       .out = native(p.out),
                       .mean = p.mean,
                       .rstd = p.rstd};
  const unsigned blocks = blocks_for(p.rows.capacity, kWarps);
  const bool aligned =
      all_wide(p.width, job.residual, job.branch, job.gamma, job.beta, job.sum, job.out);
  by_width(p.width, aligned, [&]<int Chunks>() {
    if constexpr (Chunks == 0) {
      forward_any_kernel<N><<<blocks, kThreads, 0, ctx.stream()>>>(job);
    } else {
      forward_kernel<N, Chunks><<<blocks, kThreads, 0, ctx.stream()>>>(job);
    }
  });
  check_launch(p.name());
}

template <class T>
void residual_norm_backward(CudaContext& ctx, const ResidualNormBackward<T>& p) {
  using N = Native<T>;
  if (p.rows.capacity == 0) return;
  constexpr std::int64_t kRows = ResidualNormBackward<T>::kRowsPerPartial;
  const Backward<N> job{.kind = p.kind,
                        .rows = p.rows,
                        .width = p.width,
                        .draws = DropoutDraws(p.dropout),
                        .sum = native(p.sum),
                        .gamma = native(p.gamma),
                        .mean = p.mean,
                        .rstd = p.rstd,
                        .d_out = native(p.d_out),
                        .d_sum = native(p.d_sum),
                        .d_residual = native(p.d_residual),
                        .d_branch = native(p.d_branch),
                        .accumulate_residual = p.accumulate_residual,
                        .workspace = p.workspace};
  const std::int64_t partials = (p.rows.capacity + kRows - 1) / kRows;
  const bool aligned =
      all_wide(p.width, job.sum, job.gamma, job.d_out, job.d_sum, job.d_residual, job.d_branch);
  by_width(p.width, aligned, [&]<int Chunks>() {
    if constexpr (Chunks == 0) {
      backward_any_kernel<N>
          <<<blocks_for(p.rows.capacity, kWarps), kThreads, 0, ctx.stream()>>>(job);
      const dim3 grid(blocks_for(p.width, kThreads), static_cast<unsigned>(partials));
      gamma_partials_kernel<N><<<grid, kThreads, 0, ctx.stream()>>>(job);
    } else {
      const std::size_t shared = static_cast<std::size_t>(2 * p.width) * sizeof(float);
      backward_kernel<N, Chunks>
          <<<static_cast<unsigned>(partials), kThreads, shared, ctx.stream()>>>(job);
    }
  });
  check_launch(p.name());
  const Partials gamma{.count = partials,
                       .width = p.width,
                       .stride = 2 * p.width,
                       .partials = p.workspace,
                       .out = p.d_gamma};
  if (p.d_gamma != nullptr) add_partials(ctx, gamma);
  Partials beta = gamma;
  beta.partials = p.workspace + p.width;
  beta.out = p.d_beta;
  if (p.d_beta != nullptr) add_partials(ctx, beta);
}

}  // namespace

template <>
void compute(CudaContext& ctx, const ResidualNorm<float>& p) {
  residual_norm(ctx, p);
}
template <>
void compute(CudaContext& ctx, const ResidualNorm<BFloat16>& p) {
  residual_norm(ctx, p);
}
template <>
void compute(CudaContext& ctx, const ResidualNormBackward<float>& p) {
  residual_norm_backward(ctx, p);
}
template <>
void compute(CudaContext& ctx, const ResidualNormBackward<BFloat16>& p) {
  residual_norm_backward(ctx, p);
}

}  // namespace nunchi::kernels::cuda
