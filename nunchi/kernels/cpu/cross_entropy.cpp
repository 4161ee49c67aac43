#include "nunchi/kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "nunchi/kernels/cpu/parallel.h"
#include "nunchi/kernels/cpu/rows.h"
#include "nunchi/kernels/cpu/simd.h"

namespace nunchi::kernels {
namespace {

template <class T>
T loss_of_row(const CrossEntropy<T>& p, T* x, std::int32_t target) {
  const std::int64_t size = p.vocabulary;
  RowMax<T> row_max;
  for_each_vector<T>(size, [&]<class V>(std::int64_t i, V) { row_max.add(load<V>(x + i)); });
  const T max_logit = row_max.total();
  const double target_score = static_cast<double>(x[target]) - static_cast<double>(max_logit);
  // f64 between blocks: a sum of tens of thousands of exponentials loses three digits in f32.
  constexpr std::int64_t kBlock = 1024;
  double exponentials = 0, scores = 0;
  for (std::int64_t begin = 0; begin < size; begin += kBlock) {
    T* block = x + begin;
    RowSum<T> block_exponentials, block_scores;
    for_each_vector<T>(std::min(kBlock, size - begin), [&]<class V>(std::int64_t i, V) {
      const V score = load<V>(block + i) - max_logit;
      const V e = exponential<V>(score);
      block_exponentials.add(e);
      block_scores.add(score);
      if (p.write_gradient) store<V>(block + i, e);
    });
    exponentials += static_cast<double>(block_exponentials.total());
    scores += static_cast<double>(block_scores.total());
  }
  if (p.write_gradient) {
    const T inverse = static_cast<T>(1 / exponentials);
    const T spread = static_cast<T>(p.smoothing / static_cast<double>(size));
    for_each_vector<T>(size, [&]<class V>(std::int64_t i, V) {
      store<V>(x + i, load<V>(x + i) * inverse - spread);
    });
    x[target] -= static_cast<T>(1 - p.smoothing);
  }
  return static_cast<T>(std::log(exponentials) - (1 - p.smoothing) * target_score -
                        (p.smoothing > 0 ? p.smoothing / static_cast<double>(size) * scores : 0));
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const CrossEntropy<T>& p) {
  const std::int64_t count =
      std::clamp<std::int64_t>(count_of(p.rows) - p.first_row, 0, p.chunk_rows);
  parallel_ranges(ctx, count, row_grain(p.vocabulary), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      p.loss[r] = loss_of_row(p, p.logits + r * p.vocabulary, p.targets[r]);
    }
  });
  for (std::int64_t r = count; r < p.chunk_rows; ++r) p.loss[r] = T(0);
  if (p.write_gradient) {
    std::memset(p.logits + count * p.vocabulary, 0,
                static_cast<std::size_t>((p.chunk_rows - count) * p.vocabulary) * sizeof(T));
  }
}
template void compute<Cpu<kIsa>>(CpuContext&, const CrossEntropy<float>&);

#if NUNCHI_F64_VERSION
template void compute<Cpu<kIsa>>(CpuContext&, const CrossEntropy<double>&);
#endif

}  // namespace nunchi::kernels
