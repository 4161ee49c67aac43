#include "nunchi/nn/recurrent_cache.h"

namespace nunchi::nn {
namespace {

StateRows gather(const StateRows& from, const Ragged& rows, const Tensor& index) {
  return {gather_rows(from.h, rows, index),
          from.c.defined() ? gather_rows(from.c, rows, index) : Tensor()};
}

}  // namespace

RecurrentCache::RecurrentCache(ContextBase& context, const Options& options, std::int64_t rows) {
  const Shape shape{rows, options.width};
  for (std::vector<StateRows>& buffer : buffers_) {
    for (std::size_t i = 0; i < options.layers; ++i) {
      buffer.push_back({Tensor::empty(context, options.dtype, shape),
                        options.cells
                            ? Tensor::empty(context, accumulator_type(options.dtype), shape)
                            : Tensor()});
    }
  }
}

RecurrentCache::Step RecurrentCache::extend(const StepTokens& tokens,
                                            const DecodeStep& step) const {
  const bool first = !tokens.parents.defined();
  const auto current = static_cast<std::size_t>(step.buffer);
  Step result;
  for (const StateRows& layer : first ? initial_ : buffers_[1 - current]) {
    result.before.push_back(gather(layer, step.last, first ? tokens.sources : tokens.parents));
  }
  for (const StateRows& layer : buffers_[current]) {
    const auto step_rows = [&](const Tensor& buffer) {
      return buffer.defined() ? buffer.rows(step.table_row, step.last.capacity) : Tensor();
    };
    result.after.push_back({step_rows(layer.h), step_rows(layer.c)});
  }
  return result;
}

}  // namespace nunchi::nn
