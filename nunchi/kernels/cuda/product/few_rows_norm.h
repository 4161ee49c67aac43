// Normalises rows inside the matrix product kernel that reads them. A warp normalises several rows
// at once. Each row is summed in the order of norm.cu, so all blocks get identical results; only
// the last bit of rstd can differ from norm.cu, because rsqrt is used here.
#pragma once

#include "nunchi/kernels/cuda/product/few_rows_tile.h"
#include "nunchi/kernels/norm.h"

namespace nunchi::kernels {

// Whether every block of a product can normalise the rows that it needs, while one block also
// writes the norm's results.
inline bool can_fuse_norm(const ResidualNorm<BFloat16>& n) {
  // A block must not overwrite rows that other blocks have not read yet.
  const bool no_overlap =
      n.out != n.residual &&
      (n.branch == nullptr || (n.out != n.branch && n.sum != n.residual && n.sum != n.branch));
  return !n.dropout.active() && no_overlap && aligned(n.residual) && aligned(n.branch) &&
         aligned(n.gamma) && aligned(n.beta) && aligned(n.sum) && aligned(n.out) &&
         (n.width == 256 || n.width == 512 || n.width == 1024);
}

// Rows have 256 * Chunks columns; a lane holds eight of each 256.
template <int Chunks>
constexpr int kNormWidth = 256 * Chunks;
__device__ inline int column_of(int chunk) {
  return (chunk * kWarp + static_cast<int>(threadIdx.x) % kWarp) * 8;
}

template <int Chunks>
struct NormParameters {
  uint4 gamma[Chunks], beta[Chunks];

  __device__ void load(const ResidualNorm<__nv_bfloat16>& n) {
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
      gamma[c] = load_weight(n.gamma + column_of(c));
      beta[c] = n.beta != nullptr ? load_weight(n.beta + column_of(c)) : make_uint4(0, 0, 0, 0);
    }
  }
};

// NormParameters as floats, unpacked once by a warp that normalises several rows.
template <int Chunks>
struct FloatNormParameters {
  float gamma[Chunks][8], beta[Chunks][8];

  __device__ explicit FloatNormParameters(const NormParameters<Chunks>& from) {
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
      unpack(from.gamma[c], gamma[c]);
      unpack(from.beta[c], beta[c]);
    }
  }
};

// Independent sums over the warp, interleaved.
template <int Count>
__device__ void warp_sums(float (&x)[Count]) {
#pragma unroll
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) {
#pragma unroll
    for (int i = 0; i < Count; ++i) x[i] += __shfl_xor_sync(kAllLanes, x[i], lanes);
  }
}

// Normalises `Count` rows x, which the warp's lanes hold, and calls store(i, chunk, y) with eight
// columns of row i's result. If `writes`, also writes out, mean and rstd. Rows past the count are
// normalised like all others: they are finite and meaningless (kernels/rows.h).
template <int Chunks, int Count, class Store>
__device__ void normalise(const ResidualNorm<__nv_bfloat16>& n,
                          const FloatNormParameters<Chunks>& float_parameters,
                          const std::int64_t (&row)[Count], bool writes,
                          float (&x)[Count][Chunks][8], Store&& store) {
  constexpr float kInverse = 1.0f / kNormWidth<Chunks>;
  float mean[Count] = {}, squares[Count] = {};
  if (n.kind == NormKind::layer) {
#pragma unroll
    for (int i = 0; i < Count; ++i) {
#pragma unroll
      for (int c = 0; c < Chunks; ++c) {
#pragma unroll
        for (int j = 0; j < 8; ++j) mean[i] += x[i][c][j];
      }
    }
    warp_sums(mean);
  }
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    mean[i] *= kInverse;
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        x[i][c][j] -= mean[i];
        squares[i] += x[i][c][j] * x[i][c][j];
      }
    }
  }
  warp_sums(squares);
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    const float rstd = rsqrtf(squares[i] * kInverse + static_cast<float>(n.epsilon));
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
      float y[8];
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        y[j] = x[i][c][j] * rstd * float_parameters.gamma[c][j] + float_parameters.beta[c][j];
      }
      store(i, c, y);
      if (writes) store8(n.out + row[i] * kNormWidth<Chunks> + column_of(c), y);
    }
    if (writes && threadIdx.x % kWarp == 0) {
      n.mean[row[i]] = mean[i];
      n.rstd[row[i]] = rstd;
    }
  }
}

}  // namespace nunchi::kernels
