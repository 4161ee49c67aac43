#include "nunchi/kernels/norm.h"

#include <cmath>

#include "nunchi/kernels/cpu/dropout_mask.h"
#include "nunchi/kernels/cpu/parallel.h"
#include "nunchi/kernels/cpu/rows.h"
#include "nunchi/kernels/cpu/simd.h"

namespace nunchi::kernels {
namespace {

constexpr std::int64_t kRowGrain = 8;

// d_x of one row, and the row's contribution to d_gamma and d_beta.
template <class T>
void backward_row(const ResidualNormBackward<T>& p, std::int64_t r, const T* keep, T* d_gamma,
                  T* d_beta) {
  const std::int64_t width = p.width, at = r * p.width;
  const T mean = p.mean[r], rstd = p.rstd[r];
  RowSum<T> of_gradient, of_product;
  over_row<T>(width, [&]<class V>(std::int64_t i, V) {
    const V normal = (load<V>(p.sum + at + i) - mean) * rstd;
    const V d_out = load<V>(p.d_out + at + i);
    const V d_normal = d_out * load<V>(p.gamma + i);
    store<V>(d_gamma + i, load<V>(d_gamma + i) + d_out * normal);
    store<V>(d_beta + i, load<V>(d_beta + i) + d_out);
    of_gradient.add(d_normal);
    of_product.add(d_normal * normal);
  });
  const T inverse = T(1) / static_cast<T>(width);
  const T mean_gradient = p.kind == NormKind::layer ? of_gradient.total() * inverse : T(0);
  const T mean_product = of_product.total() * inverse;
  over_row<T>(width, [&]<class V>(std::int64_t i, V) {
    const V normal = (load<V>(p.sum + at + i) - mean) * rstd;
    const V d_normal = load<V>(p.d_out + at + i) * load<V>(p.gamma + i);
    V d = rstd * (d_normal - mean_gradient - normal * mean_product);
    if (p.d_sum != nullptr) d += load<V>(p.d_sum + at + i);
    if (p.d_branch != nullptr) {
      store<V>(p.d_branch + at + i, keep != nullptr ? d * load<V>(keep + i) : d);
    }
    if (p.d_residual != nullptr) {
      store<V>(p.d_residual + at + i,
               p.accumulate_residual ? load<V>(p.d_residual + at + i) + d : d);
    }
  });
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ResidualNorm<T>& p) {
  const std::int64_t width = p.width;
  const bool dropping = p.branch != nullptr && p.dropout.active();
  const KeepRows<T> keeps(ctx, dropping ? width : 0);
  parallel_ranges(ctx, count_of(p.rows), kRowGrain, [&](std::int64_t begin, std::int64_t end) {
    T* keep = keeps.own();
    for (std::int64_t r = begin; r < end; ++r) {
      const T* x = p.residual + r * width;
      RowSum<T> total;
      if (p.branch != nullptr) {
        const T* branch = p.branch + r * width;
        T* sum = p.sum + r * width;
        if (dropping) {
          const Keeper<T> keeper(p.dropout);
          keeper.fill(sentence_of(p.rows, r), position_of(p.rows, r), 0, width, keep);
        }
        over_row<T>(width, [&]<class V>(std::int64_t i, V) {
          const V added = dropping ? load<V>(branch + i) * load<V>(keep + i) : load<V>(branch + i);
          const V value = load<V>(x + i) + added;
          store<V>(sum + i, value);
          total.add(value);
        });
        x = sum;
      } else if (p.kind == NormKind::layer) {
        over_row<T>(width, [&]<class V>(std::int64_t i, V) { total.add(load<V>(x + i)); });
      }
      const T mean = p.kind == NormKind::layer ? total.total() / static_cast<T>(width) : T(0);
      RowSum<T> squares;
      over_row<T>(width, [&]<class V>(std::int64_t i, V) {
        const V centred = load<V>(x + i) - mean;
        squares.add(centred * centred);
      });
      const T variance = squares.total() / static_cast<T>(width);
      const T rstd = T(1) / std::sqrt(variance + static_cast<T>(p.epsilon));
      T* out = p.out + r * width;
      over_row<T>(width, [&]<class V>(std::int64_t i, V) {
        const V normal = (load<V>(x + i) - mean) * rstd * load<V>(p.gamma + i);
        store<V>(out + i, p.beta != nullptr ? normal + load<V>(p.beta + i) : normal);
      });
      p.mean[r] = mean;
      p.rstd[r] = rstd;
    }
  });
  clear_tail(p.rows, width, p.out);
  if (p.branch != nullptr) clear_tail(p.rows, width, p.sum);
}
template void compute<Cpu<kIsa>>(CpuContext&, const ResidualNorm<float>&);
template void compute<Cpu<kIsa>>(CpuContext&, const ResidualNorm<double>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ResidualNormBackward<T>& p) {
  // Rows per partial sum of d_gamma and d_beta, independent of the number of threads.
  constexpr std::int64_t kRows = 64;
  const std::int64_t width = p.width, count = count_of(p.rows);
  const std::int64_t partials = (count + kRows - 1) / kRows;
  const ScratchMemory scratch(ctx.arena(),
                              static_cast<std::size_t>(partials * 2 * width) * sizeof(T));
  T* sums = scratch.as<T>();  // [partials, 2, C]
  const bool dropping = p.d_branch != nullptr && p.dropout.active();
  const KeepRows<T> keeps(ctx, dropping ? width : 0);
  parallel_ranges(ctx, partials, 1, [&](std::int64_t begin, std::int64_t end) {
    T* keep = keeps.own();
    for (std::int64_t partial = begin; partial < end; ++partial) {
      T* d_gamma = sums + partial * 2 * width;
      std::fill(d_gamma, d_gamma + 2 * width, T(0));
      for (std::int64_t r = partial * kRows; r < std::min(count, (partial + 1) * kRows); ++r) {
        if (dropping) {
          const Keeper<T> keeper(p.dropout);
          keeper.fill(sentence_of(p.rows, r), position_of(p.rows, r), 0, width, keep);
        }
        backward_row(p, r, dropping ? keep : nullptr, d_gamma, d_gamma + width);
      }
    }
  });
  parallel_ranges(ctx, width, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t partial = 0; partial < partials; ++partial) {
      const T* d_gamma = sums + partial * 2 * width;
      for (std::int64_t i = begin; i < end; ++i) p.d_gamma[i] += d_gamma[i];
      if (p.d_beta == nullptr) continue;
      for (std::int64_t i = begin; i < end; ++i) p.d_beta[i] += d_gamma[width + i];
    }
  });
  if (p.d_branch != nullptr) clear_tail(p.rows, width, p.d_branch);
  if (p.d_residual != nullptr && !p.accumulate_residual) clear_tail(p.rows, width, p.d_residual);
}
template void compute<Cpu<kIsa>>(CpuContext&, const ResidualNormBackward<float>&);
template void compute<Cpu<kIsa>>(CpuContext&, const ResidualNormBackward<double>&);

}  // namespace nunchi::kernels
