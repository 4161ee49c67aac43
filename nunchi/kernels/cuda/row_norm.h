// Rows that a product normalises before it reads them, a warp a row, as norm.cu does it.
#pragma once

#include "nunchi/kernels/cuda/row_tile.h"
#include "nunchi/kernels/norm.h"

namespace nunchi::kernels::cuda {

struct NormJob {
  NormKind kind;
  Rows rows;
  float epsilon;
  const __nv_bfloat16 *residual, *branch, *gamma, *beta;
  __nv_bfloat16 *sum, *out;
  float *mean, *rstd;
};

inline NormJob norm_job(const ResidualNorm<BFloat16>& p) {
  return {.kind = p.kind,
          .rows = p.rows,
          .epsilon = static_cast<float>(p.epsilon),
          .residual = native(p.residual),
          .branch = native(p.branch),
          .gamma = native(p.gamma),
          .beta = native(p.beta),
          .sum = native(p.sum),
          .out = native(p.out),
          .mean = p.mean,
          .rstd = p.rstd};
}

// Whether blocks of a product can each normalise the rows that they need, and one of them write
// what a normalisation writes.
inline bool can_be_shared(const ResidualNorm<BFloat16>& n) {
  // What one block writes the others may not have read yet.
  const bool apart =
      n.out != n.residual &&
      (n.branch == nullptr || (n.out != n.branch && n.sum != n.residual && n.sum != n.branch));
  return !n.dropout.active() && apart && aligned(n.residual) && aligned(n.branch) &&
         aligned(n.gamma) && aligned(n.beta) && aligned(n.sum) && aligned(n.out) &&
         (n.width == 256 || n.width == 512 || n.width == 1024);
}

// Rows are 256 * Chunks wide; a lane's columns are eight of each 256.
template <int Chunks>
constexpr int kNormWidth = 256 * Chunks;
__device__ inline int column_of(int chunk) {
  return (chunk * kWarp + static_cast<int>(threadIdx.x) % kWarp) * 8;
}

template <int Chunks>
struct NormParameters {
  uint4 gamma[Chunks], beta[Chunks];

  __device__ void load(const NormJob& n) {
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
      gamma[c] = load_weight(n.gamma + column_of(c));
      beta[c] = n.beta != nullptr ? load_weight(n.beta + column_of(c)) : make_uint4(0, 0, 0, 0);
    }
  }
};

__device__ inline void unpack(const uint4& words, float (&x)[8]) {
  x[0] = low_half(words.x), x[1] = high_half(words.x), x[2] = low_half(words.y);
  x[3] = high_half(words.y), x[4] = low_half(words.z), x[5] = high_half(words.z);
  x[6] = low_half(words.w), x[7] = high_half(words.w);
}

// Normalises the row whose sum the warp's lanes hold; keep(chunk, eight columns) takes what comes
// out. Where it `writes`, it does what a normalisation does beyond the sum. Of rows that are not
// `real` come zeros.
struct NormRow {
  std::int64_t row;
  bool real, writes;
};
template <int Chunks, class Keep>
__device__ void normalise(const NormJob& n, const NormParameters<Chunks>& parameters,
                          const NormRow& which, const float (&x)[Chunks][8], Keep&& keep) {
  float total = 0;
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
#pragma unroll
    for (int j = 0; j < 8; ++j) total += x[c][j];
  }
  constexpr float kInverse = 1.0f / kNormWidth<Chunks>;
  const float mean = n.kind == NormKind::layer ? warp_sum(total) * kInverse : 0.0f;
  float squares = 0;
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
#pragma unroll
    for (int j = 0; j < 8; ++j) squares += (x[c][j] - mean) * (x[c][j] - mean);
  }
  const float rstd = 1.0f / sqrtf(warp_sum(squares) * kInverse + n.epsilon);
  const std::int64_t at = which.row * kNormWidth<Chunks>;
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    float y[8], beta[8];
    unpack(parameters.gamma[c], y);
    unpack(parameters.beta[c], beta);
#pragma unroll
    for (int j = 0; j < 8; ++j) y[j] = which.real ? (x[c][j] - mean) * rstd * y[j] + beta[j] : 0.0f;
    keep(c, y);
    if (which.writes) store8(n.out + at + column_of(c), y);
  }
  if (which.writes && threadIdx.x % kWarp == 0) {
    n.mean[which.row] = mean;
    n.rstd[which.row] = rstd;
  }
}

}  // namespace nunchi::kernels::cuda
