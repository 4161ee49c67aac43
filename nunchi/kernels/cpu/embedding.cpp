#include "nunchi/kernels/embedding.h"

#include "nunchi/kernels/cpu/dropout_mask.h"
#include "nunchi/kernels/cpu/parallel.h"
#include "nunchi/kernels/cpu/rows.h"
#include "nunchi/kernels/cpu/simd.h"
#include "nunchi/kernels/int8_product.h"

namespace nunchi::kernels {
namespace {

// A row of an int8 table as numbers.
template <class T>
void restore_row(const FormedMatrix& table, std::int64_t row, std::int64_t width, T* out) {
  const auto* values = static_cast<const std::uint8_t*>(table.data) + int8_index(row, 0, width);
  const T scale = table.scales[row];
  for (std::int64_t k = 0; k < width; ++k) {
    const int value = values[k / kInt8Group * kInt8PanelRows * kInt8Group + k % kInt8Group];
    out[k] = static_cast<T>(value - kInt8Zero) * scale;
  }
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Embedding<T>& p) {
  const std::int64_t width = p.width;
  const bool has_dropout = p.dropout.active();
  const DropoutScratch<T> dropout_scratch(ctx, has_dropout ? width : 0);
  parallel_ranges(
      ctx, count_of(p.rows), row_grain(width), [&](std::int64_t begin, std::int64_t end) {
        T* dropout_factors = dropout_scratch.thread_buffer();
        for (std::int64_t r = begin; r < end; ++r) {
          const T* position =
              p.positions != nullptr ? p.positions + position_of(p.rows, r) * width : nullptr;
          T* out = p.out + r * width;
          const T* token = out;
          if (p.formed_table.data != nullptr) {
            restore_row(p.formed_table, p.ids[r], width, out);
          } else {
            token = p.table + p.ids[r] * width;
          }
          if (has_dropout) {
            const DropoutGenerator<T> generator(p.dropout);
            generator.fill(sentence_of(p.rows, r), position_of(p.rows, r), 0, width,
                           dropout_factors);
          }
          for_each_vector<T>(width, [&]<class V>(std::int64_t i, V) {
            V value = load<V>(token + i) * static_cast<T>(p.scale);
            if (position != nullptr) value += load<V>(position + i);
            store<V>(out + i, has_dropout ? value * load<V>(dropout_factors + i) : value);
          });
        }
      });
  clear_tail(p.rows, width, p.out);
}
template void compute<Cpu<kIsa>>(CpuContext&, const Embedding<float>&);

// Two rows may hold the same token, so threads split the columns: each adds all rows in order.
template <class Target, class T>
void compute(ContextOf<Target>& ctx, const EmbeddingBackward<T>& p) {
  const std::int64_t width = p.width, count = count_of(p.rows);
  constexpr std::int64_t kColumns = 128;
  const DropoutScratch<T> dropout_scratch(ctx, p.dropout.active() ? width : 0);
  parallel_ranges(
      ctx, (width + kColumns - 1) / kColumns, 1, [&](std::int64_t first, std::int64_t last) {
        const std::int64_t begin = first * kColumns,
                           columns = std::min(width, last * kColumns) - begin;
        T* dropout_factors = dropout_scratch.thread_buffer();
        for (std::int64_t r = 0; r < count; ++r) {
          const T* d_out = p.d_out + r * width + begin;
          if (p.dropout.active()) {
            const DropoutGenerator<T> generator(p.dropout);
            generator.fill(sentence_of(p.rows, r), position_of(p.rows, r),
                           static_cast<std::uint32_t>(begin), columns, dropout_factors);
          }
          T* token = p.d_table != nullptr ? p.d_table + p.ids[r] * width + begin : nullptr;
          T* position = p.d_positions != nullptr
                            ? p.d_positions + position_of(p.rows, r) * width + begin
                            : nullptr;
          for_each_vector<T>(columns, [&]<class V>(std::int64_t i, V) {
            V d = load<V>(d_out + i);
            if (p.dropout.active()) d *= load<V>(dropout_factors + i);
            if (token != nullptr)
              store<V>(token + i, load<V>(token + i) + d * static_cast<T>(p.scale));
            if (position != nullptr) store<V>(position + i, load<V>(position + i) + d);
          });
        }
      });
}
template void compute<Cpu<kIsa>>(CpuContext&, const EmbeddingBackward<float>&);

#if NUNCHI_F64_VERSION
template void compute<Cpu<kIsa>>(CpuContext&, const Embedding<double>&);
template void compute<Cpu<kIsa>>(CpuContext&, const EmbeddingBackward<double>&);
#endif

}  // namespace nunchi::kernels
