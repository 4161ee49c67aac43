// Every block of a product normalises the few rows itself, a warp a row, and leaves them in shared
// memory as the product's warps read them; the first block of each tile of rows also writes what a
// normalisation writes. The product is row_product.cu's, to the bit.
#include "nunchi/kernels/norm_product.h"

#include "nunchi/kernels/cuda/row_tile.h"

namespace nunchi::kernels::cuda {
namespace {

constexpr int kRows = 8;  // of a block
// Elements between two rows in shared memory, beyond K: neighbouring rows in other banks.
constexpr int kPadding = 32;
// With more rows, blocks that all normalise the same rows do so longer than a kernel takes.
constexpr std::int64_t kMostNormRows = 16;

struct NormJob {
  NormKind kind;
  Rows rows;
  float epsilon;
  const __nv_bfloat16 *residual, *branch, *gamma, *beta;
  __nv_bfloat16 *sum, *out;
  float *mean, *rstd;
};

// Rows are 256 * Chunks wide; a lane's columns are eight of each 256.
template <int Chunks>
constexpr int kWidth = 256 * Chunks;
__device__ inline int column_of(int chunk) {
  return (chunk * kWarp + static_cast<int>(threadIdx.x) % kWarp) * 8;
}

template <int Chunks>
struct Parameters {
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

// The row by this warp, as norm.cu does it: to `shared`, and to the norm's results where `writes`.
template <int Chunks>
__device__ void normalise(const NormJob& n, const Parameters<Chunks>& parameters, std::int64_t row,
                          __nv_bfloat16* shared, bool writes) {
  const std::int64_t at = row * kWidth<Chunks>;
  // A row past the count can be read, so that nothing waits for the count.
  const std::int64_t count = real_rows(n.rows);
  uint4 residual[Chunks], branch[Chunks];
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    residual[c] = *reinterpret_cast<const uint4*>(n.residual + at + column_of(c));
    branch[c] = make_uint4(0, 0, 0, 0);
    if (n.branch != nullptr) {
      branch[c] = *reinterpret_cast<const uint4*>(n.branch + at + column_of(c));
    }
  }
  const bool real = row < count;
  float x[Chunks][8];
  float total = 0;
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    float more[8];
    unpack(residual[c], x[c]);
    unpack(branch[c], more);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      x[c][j] = real ? to_float(from_float<__nv_bfloat16>(x[c][j] + more[j])) : 0.0f;
      total += x[c][j];
    }
  }
  constexpr float kInverse = 1.0f / kWidth<Chunks>;
  const float mean = n.kind == NormKind::layer ? warp_sum(total) * kInverse : 0.0f;
  float squares = 0;
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
#pragma unroll
    for (int j = 0; j < 8; ++j) squares += (x[c][j] - mean) * (x[c][j] - mean);
  }
  const float rstd = 1.0f / sqrtf(warp_sum(squares) * kInverse + n.epsilon);
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    float y[8], beta[8];
    unpack(parameters.gamma[c], y);
    unpack(parameters.beta[c], beta);
#pragma unroll
    for (int j = 0; j < 8; ++j) y[j] = real ? (x[c][j] - mean) * rstd * y[j] + beta[j] : 0.0f;
    store8(shared + column_of(c), y);
    if (!writes) continue;
    if (n.branch != nullptr) store8(n.sum + at + column_of(c), x[c]);
    store8(n.out + at + column_of(c), y);
  }
  if (writes && threadIdx.x % kWarp == 0) {
    n.mean[row] = mean;
    n.rstd[row] = rstd;
  }
}

template <class N, int Chunks>
__global__ void __launch_bounds__(kWidth<Chunks> / 2) norm_product_kernel(NormJob n, RowJob<N> p) {
  constexpr int kShare = 64, kWarps = kWidth<Chunks> / kShare;
  constexpr int kStride = kWidth<Chunks> + kPadding;
  extern __shared__ __align__(16) float partial[];  // [kWarps, kRows, kColumns], then the rows
  const int warp = threadIdx.x / kWarp, first_row = static_cast<int>(blockIdx.y) * kRows;
  auto* rows = reinterpret_cast<__nv_bfloat16*>(partial + kWarps * kRows * kColumns<1>);
  WeightTile<kShare, 1> weights;
  weights.load(p, static_cast<int>(blockIdx.x));
  Parameters<Chunks> parameters;
  parameters.load(n);
  begin();
  const int count = min(kRows, p.rows - first_row);
#pragma unroll
  for (int turn = 0; turn < kRows; turn += kWarps) {
    const int row = turn + warp;
    if (row >= count) continue;
    normalise<Chunks>(n, parameters, first_row + row, rows + row * kStride, blockIdx.x == 0);
  }
  __syncthreads();
  // Past the last row, the last again; what comes of it is not written.
  const int row = min(static_cast<int>(threadIdx.x) % kWarp / 4, count - 1);
  WarpShare<kShare> x;
  x.load(rows + row * kStride + warp * kShare);
  float sums[1][1][4] = {};
  add_pieces(sums[0][0], weights.low[0], weights.high[0], x);
  keep_sums(partial + warp * kRows * kColumns<1>, sums);
  __syncthreads();
  write_tile<1, 1>(p, partial, static_cast<int>(blockIdx.x), first_row, weights.bias);
}

template <class C>
bool fits(CudaContext& ctx, const NormProduct<BFloat16, C>& p) {
  const ResidualNorm<BFloat16>& n = p.norm;
  const Product<BFloat16, C>& q = p.product;
  // What the first block writes the others may not have read yet.
  const bool apart =
      n.out != n.residual &&
      (n.branch == nullptr || (n.out != n.branch && n.sum != n.residual && n.sum != n.branch));
  const bool wide = aligned(n.residual) && aligned(n.branch) && aligned(n.gamma) &&
                    aligned(n.beta) && aligned(n.sum) && aligned(n.out) && aligned(q.b) &&
                    aligned(q.bias) && aligned(q.c);
  // Where blocks are more than run at once, normalising once more costs more than a kernel does.
  return !ctx.deterministic() && !n.dropout.active() && apart && wide && !q.transpose_a &&
         q.transpose_b && !q.accumulate && q.m <= kMostNormRows && q.n % 4 == 0 &&
         (q.k == 256 || q.k == 512 || q.k == 1024) &&
         parts(q.n, 16) * parts(q.m, kRows) <= 2 * ctx.multiprocessors();
}

template <class C>
void norm_product(CudaContext& ctx, const NormProduct<BFloat16, C>& p) {
  using N = Native<C>;
  if (!fits(ctx, p)) {
    compute(ctx, p.norm);
    return compute(ctx, p.product);
  }
  const NormJob norm{.kind = p.norm.kind,
                     .rows = p.norm.rows,
                     .epsilon = static_cast<float>(p.norm.epsilon),
                     .residual = native(p.norm.residual),
                     .branch = native(p.norm.branch),
                     .gamma = native(p.norm.gamma),
                     .beta = native(p.norm.beta),
                     .sum = native(p.norm.sum),
                     .out = native(p.norm.out),
                     .mean = p.norm.mean,
                     .rstd = p.norm.rstd};
  const RowJob<N> job{.rows = static_cast<int>(p.product.m),
                      .outputs = static_cast<int>(p.product.n),
                      .tiles = static_cast<int>(parts(p.product.n, 16)),
                      .k = p.product.k,
                      .x = nullptr,
                      .weight = native(p.product.b),
                      .bias = native(p.product.bias),
                      .relu = p.product.relu,
                      .out = native(p.product.c)};
  const auto width = static_cast<std::size_t>(job.k), warps = width / 64;
  const Grid grid{.blocks = dim3(static_cast<unsigned>(job.tiles), blocks_for(job.rows, kRows)),
                  .threads = static_cast<unsigned>(warps * kWarp),
                  .shared = warps * kRows * kColumns<1> * sizeof(float) +
                            kRows * (width + kPadding) * sizeof(__nv_bfloat16)};
  if (width == 256) return start_early(ctx, p.name(), norm_product_kernel<N, 1>, grid, norm, job);
  if (width == 512) return start_early(ctx, p.name(), norm_product_kernel<N, 2>, grid, norm, job);
  start_early(ctx, p.name(), norm_product_kernel<N, 4>, grid, norm, job);
}

}  // namespace

template <>
void compute(CudaContext& ctx, const NormProduct<float>& p) {
  compute(ctx, p.norm);
  compute(ctx, p.product);
}
template <>
void compute(CudaContext& ctx, const NormProduct<BFloat16>& p) {
  norm_product(ctx, p);
}
template <>
void compute(CudaContext& ctx, const NormProduct<BFloat16, float>& p) {
  norm_product(ctx, p);
}

}  // namespace nunchi::kernels::cuda
