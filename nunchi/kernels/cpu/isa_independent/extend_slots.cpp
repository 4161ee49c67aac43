#include <algorithm>

#include "nunchi/kernels/decode_attention.h"
#include "nunchi/kernels/step_rows.h"

namespace nunchi::kernels {

template <>
void compute<AnyCpu>(CpuContext&, const ExtendSlots& p) {
  std::int64_t row = 0;
  const std::int64_t hypotheses = p.hypothesis_count();
  for (std::int64_t h = 0; h < hypotheses; ++h) {
    std::int32_t* slot = p.slot + h * p.stride;
    std::int32_t length = 0;
    if (p.parent != nullptr) {
      length = p.old_length[p.parent[h]];
      std::copy_n(p.old_slot + p.parent[h] * p.old_stride, length, slot);
    }
    const std::int32_t tokens = p.offset != nullptr ? p.offset[h + 1] - p.offset[h] : 1;
    const UnitSlots& unit = p.units[p.unit[h]];
    for (std::int32_t i = 0; i < tokens; ++i, ++row) {
      slot[length] = p.row_slot[row] = p.slot_of(p.unit[h], unit.prompt, h, length);
      p.row_hypothesis[row] = static_cast<std::int32_t>(h);
      p.row_position[row] = length;
      p.row_keys[row] = ++length;
      p.row_memory_begin[row] = unit.memory_begin;
      p.row_memory_length[row] = unit.memory_length;
    }
    p.length[h] = length;
    p.last_row[h] = static_cast<std::int32_t>(row - 1);
  }
  for (std::int32_t* rows : {p.row_hypothesis, p.row_position, p.row_keys, p.row_slot,
                             p.row_memory_begin, p.row_memory_length}) {
    std::fill(rows + row, rows + p.capacity, 0);
  }
  p.count[0] = static_cast<std::int32_t>(row);
  p.count[1] = static_cast<std::int32_t>(hypotheses);
}

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const StepRows<T>& p) {
  run(ctx, p.slots);
  run(ctx, p.embedding);
}
template void compute<AnyCpu>(CpuContext&, const StepRows<float>&);
template void compute<AnyCpu>(CpuContext&, const StepRows<double>&);

}  // namespace nunchi::kernels
