#include "nunchi/kernels/norm.h"

#include <cmath>

#include "nunchi/kernels/cpu/dropout_mask.h"
#include "nunchi/kernels/cpu/parallel.h"
#include "nunchi/kernels/cpu/rows.h"
#include "nunchi/kernels/cpu/simd.h"

namespace nunchi::kernels {
namespace {

// Computes d_residual and d_branch of one row and adds the row's contribution to d_gamma and
// d_beta.
template <class T>
void backward_row(const ResidualNormBackward<T>& p, std::int64_t r, const T* dropout_factors,
                  T* d_gamma, T* d_beta) {
  const std::int64_t width = p.width, offset = r * p.width;
  const T mean = p.mean[r], rstd = p.rstd[r];
  RowSum<T> gradient_sum, product_sum;
  for_each_vector<T>(width, [&]<class V>(std::int64_t i, V) {
    const V normalised = (load<V>(p.sum + offset + i) - mean) * rstd;
    const V d_out = load<V>(p.d_out + offset + i);
    const V d_normalised = d_out * load<V>(p.gamma + i);
    store<V>(d_gamma + i, load<V>(d_gamma + i) + d_out * normalised);
    store<V>(d_beta + i, load<V>(d_beta + i) + d_out);
    gradient_sum.add(d_normalised);
    product_sum.add(d_normalised * normalised);
  });
  const T inverse = T(1) / static_cast<T>(width);
  const T mean_gradient = p.kind == NormKind::layer ? gradient_sum.total() * inverse : T(0);
  const T mean_product = product_sum.total() * inverse;
  for_each_vector<T>(width, [&]<class V>(std::int64_t i, V) {
    const V normalised = (load<V>(p.sum + offset + i) - mean) * rstd;
    const V d_normalised = load<V>(p.d_out + offset + i) * load<V>(p.gamma + i);
    V d = rstd * (d_normalised - mean_gradient - normalised * mean_product);
    if (p.d_sum != nullptr) d += load<V>(p.d_sum + offset + i);
    if (p.d_branch != nullptr) {
      store<V>(p.d_branch + offset + i,
               dropout_factors != nullptr ? d * load<V>(dropout_factors + i) : d);
    }
    if (p.d_residual != nullptr) {
      store<V>(p.d_residual + offset + i,
               p.accumulate_residual ? load<V>(p.d_residual + offset + i) + d : d);
    }
  });
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ResidualNorm<T>& p) {
  const std::int64_t width = p.width;
  const bool has_dropout = p.branch != nullptr && p.dropout.active();
  const DropoutScratch<T> dropout_scratch(ctx, has_dropout ? width : 0);
  parallel_ranges(
      ctx, count_of(p.rows), row_grain(width), [&](std::int64_t begin, std::int64_t end) {
        T* dropout_factors = dropout_scratch.thread_buffer();
        for (std::int64_t r = begin; r < end; ++r) {
          const T* x = p.residual + r * width;
          RowSum<T> row_sum;
          if (p.branch != nullptr) {
            const T* branch = p.branch + r * width;
            T* sum = p.sum + r * width;
            if (has_dropout) {
              const DropoutGenerator<T> generator(p.dropout);
              generator.fill(sentence_of(p.rows, r), position_of(p.rows, r), 0, width,
                             dropout_factors);
            }
            for_each_vector<T>(width, [&]<class V>(std::int64_t i, V) {
              const V added = has_dropout ? load<V>(branch + i) * load<V>(dropout_factors + i)
                                          : load<V>(branch + i);
              const V value = load<V>(x + i) + added;
              store<V>(sum + i, value);
              row_sum.add(value);
            });
            x = sum;
          } else if (p.kind == NormKind::layer) {
            for_each_vector<T>(width,
                               [&]<class V>(std::int64_t i, V) { row_sum.add(load<V>(x + i)); });
          }
          const T mean = p.kind == NormKind::layer ? row_sum.total() / static_cast<T>(width) : T(0);
          RowSum<T> squares;
          for_each_vector<T>(width, [&]<class V>(std::int64_t i, V) {
            const V centred = load<V>(x + i) - mean;
            squares.add(centred * centred);
          });
          const T variance = squares.total() / static_cast<T>(width);
          const T rstd = T(1) / std::sqrt(variance + static_cast<T>(p.epsilon));
          T* out = p.out + r * width;
          for_each_vector<T>(width, [&]<class V>(std::int64_t i, V) {
            const V scaled = (load<V>(x + i) - mean) * rstd * load<V>(p.gamma + i);
            store<V>(out + i, p.beta != nullptr ? scaled + load<V>(p.beta + i) : scaled);
          });
          p.mean[r] = mean;
          p.rstd[r] = rstd;
        }
      });
  clear_tail(p.rows, width, p.out);
  if (p.branch != nullptr) clear_tail(p.rows, width, p.sum);
}
template void compute<Cpu<kIsa>>(CpuContext&, const ResidualNorm<float>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ResidualNormBackward<T>& p) {
  // Rows per partial sum of d_gamma and d_beta, independent of the number of threads.
  constexpr std::int64_t kRows = 64;
  const std::int64_t width = p.width, count = count_of(p.rows);
  const std::int64_t partials = (count + kRows - 1) / kRows;
  const ScratchMemory scratch(ctx.arena(),
                              static_cast<std::size_t>(partials * 2 * width) * sizeof(T));
  T* all_sums = scratch.as<T>();  // [partials, 2, C]: d_gamma, then d_beta
  const bool has_dropout = p.d_branch != nullptr && p.dropout.active();
  const DropoutScratch<T> dropout_scratch(ctx, has_dropout ? width : 0);
  parallel_ranges(ctx, partials, 1, [&](std::int64_t begin, std::int64_t end) {
    T* dropout_factors = dropout_scratch.thread_buffer();
    for (std::int64_t partial = begin; partial < end; ++partial) {
      T* partial_sums = all_sums + partial * 2 * width;
      std::fill(partial_sums, partial_sums + 2 * width, T(0));
      for (std::int64_t r = partial * kRows; r < std::min(count, (partial + 1) * kRows); ++r) {
        if (has_dropout) {
          const DropoutGenerator<T> generator(p.dropout);
          generator.fill(sentence_of(p.rows, r), position_of(p.rows, r), 0, width, dropout_factors);
        }
        backward_row(p, r, has_dropout ? dropout_factors : nullptr, partial_sums,
                     partial_sums + width);
      }
    }
  });
  const std::int64_t column_grain = std::max<std::int64_t>(64, row_grain(2 * partials));
  parallel_ranges(ctx, width, column_grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t partial = 0; partial < partials; ++partial) {
      const T* partial_sums = all_sums + partial * 2 * width;
      for (std::int64_t i = begin; i < end; ++i) p.d_gamma[i] += partial_sums[i];
      if (p.d_beta == nullptr) continue;
      for (std::int64_t i = begin; i < end; ++i) p.d_beta[i] += partial_sums[width + i];
    }
  });
  if (p.d_branch != nullptr) clear_tail(p.rows, width, p.d_branch);
  if (p.d_residual != nullptr && !p.accumulate_residual) clear_tail(p.rows, width, p.d_residual);
}
template void compute<Cpu<kIsa>>(CpuContext&, const ResidualNormBackward<float>&);

#if NUNCHI_F64_VERSION
template void compute<Cpu<kIsa>>(CpuContext&, const ResidualNorm<double>&);
template void compute<Cpu<kIsa>>(CpuContext&, const ResidualNormBackward<double>&);
#endif

}  // namespace nunchi::kernels
