#include "nunchi/nn/position/position_table.h"

#include "nunchi/ops/tensors.h"

namespace nunchi::nn {

Tensor PositionTable::for_length(ContextBase& context, std::int64_t length) const {
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
  const DType compute_dtype = parameters_.dtype();
  const DType dtype =
      precision_ == Precision::accumulator ? accumulator_type(compute_dtype) : compute_dtype;
  table_ = Tensor::empty(parameters_.weights().context(), dtype, {positions, width_});
  convert(from_host(context, values, {positions, width_}), table_);
  context.synchronize();  // other contexts may read it
  return table_;
}

}  // namespace nunchi::nn
