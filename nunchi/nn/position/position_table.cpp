#include "nunchi/nn/position/position_table.h"

#include "nunchi/ops/tensors.h"

namespace nunchi::nn {

Tensor PositionTable::reaching(ContextBase& context, std::int64_t length) const {
  const std::lock_guard lock(mutex_);
  if (table_.defined() && table_.size(0) >= length) return table_;
  std::int64_t positions = 256;
  while (positions < length) positions *= 2;
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(positions * width_));
  for (std::int64_t position = 0; position < positions; ++position) {
    for (std::int64_t column = 0; column < width_; ++column) {
      values.push_back(value_(position, column));
    }
  }
  const DType computed = parameters_.dtype();
  table_ = Tensor::empty(parameters_.weights().context(),
                         kept_ == Kept::exact ? accumulator_type(computed) : computed,
                         {positions, width_});
  convert(from_host(context, values, {positions, width_}), table_);
  context.synchronize();  // other contexts may read it
  return table_;
}

}  // namespace nunchi::nn
