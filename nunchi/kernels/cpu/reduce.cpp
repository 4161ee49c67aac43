#include "nunchi/kernels/reduce.h"

#include <algorithm>

#include "nunchi/kernels/cpu/parallel.h"
#include "nunchi/kernels/cpu/simd.h"

namespace nunchi::kernels {
namespace {

// The order of additions depends only on the block and on the index of an element in it, not on the
// number of threads or the vector width.
template <class T>
double sum_of_block(const Sum<T>& p, std::int64_t begin, std::int64_t end) {
  constexpr int kSums = 8;
  double sums[kSums] = {};
  std::int64_t i = begin;
  for (; i + kSums <= end; i += kSums) {
    for (int l = 0; l < kSums; ++l) {
      const double x = p.x[i + l];
      sums[l] += p.squares ? x * x : x;
    }
  }
  for (; i < end; ++i) {
    const double x = p.x[i];
    sums[0] += p.squares ? x * x : x;
  }
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ColumnSum<T>& p) {
  // Threads split the columns, never the rows: each column is summed in ascending row order.
  constexpr std::int64_t kColumns = 256, kRows = 4;
  const std::int64_t grain = std::max<std::int64_t>(kLanes<T> * 4, row_grain(p.rows));
  parallel_ranges(ctx, p.width, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t begin = first; begin < last; begin += kColumns) {
      const std::int64_t width = std::min(kColumns, last - begin);
      T sums[kColumns] = {};
      for (std::int64_t r = 0; r < p.rows; r += kRows) {
        const T* x = p.x + r * p.width + begin;
        const std::int64_t rows = std::min(kRows, p.rows - r);
        for_each_vector<T>(width, [&]<class V>(std::int64_t i, V) {
          V sum = load<V>(sums + i);
          for (std::int64_t k = 0; k < rows; ++k) sum += load<V>(x + k * p.width + i);
          store<V>(sums + i, sum);
        });
      }
      for (std::int64_t i = 0; i < width; ++i) p.out[begin + i] += sums[i];
    }
  });
}
template void compute<Cpu<kIsa>>(CpuContext&, const ColumnSum<float>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Sum<T>& p) {
  constexpr std::int64_t kBlock = 4096, kBlocksPerPass = 1024;
  double total = 0;
  for (std::int64_t start = 0; start < p.count; start += kBlock * kBlocksPerPass) {
    double partial[kBlocksPerPass];
    const std::int64_t blocks = std::min(kBlocksPerPass, (p.count - start + kBlock - 1) / kBlock);
    parallel_ranges(ctx, blocks, 8, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t b = first; b < last; ++b) {
        const std::int64_t begin = start + b * kBlock;
        partial[b] = sum_of_block(p, begin, std::min(p.count, begin + kBlock));
      }
    });
    for (std::int64_t b = 0; b < blocks; ++b) total += partial[b];
  }
  *p.out = total;
}
template void compute<Cpu<kIsa>>(CpuContext&, const Sum<float>&);

#if NUNCHI_F64_VERSION
template void compute<Cpu<kIsa>>(CpuContext&, const ColumnSum<double>&);
template void compute<Cpu<kIsa>>(CpuContext&, const Sum<double>&);
#endif

}  // namespace nunchi::kernels
