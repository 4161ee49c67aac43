#include "nunchi/nn/feature_embedding.h"

#include "nunchi/nn/embedding.h"
#include "nunchi/ops/embedding.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/trace/trace.h"

namespace nunchi::nn {

FeatureEmbedding::FeatureEmbedding(Parameters& parameters, const std::string& name,
                                   const Options& options)
    : projection_(parameters, name,
                  {.inputs = options.features, .outputs = options.width, .bias = options.bias}),
      dropout_{options.dropout, parameters.next_operation_id()} {}

Variable FeatureEmbedding::operator()(const Tensor& values, const Ragged& batch,
                                      const Position& position) const {
  const Tensor rows = Tensor::empty(
      values.context(), projection_.parameters().weight.value().dtype(), values.shape());
  convert(values, rows);
  const Variable projected = projection_(Variable(rows));
  if (values.context().trace() != nullptr) {
    write_to_trace(Tap::token_embedding, {"encoder", -1, ""}, projected.value(), batch);
    trace_positions(values.context(), batch, position, "encoder");
  }
  return add_positions(projected, batch, position.embed(values.context(), batch.max_length),
                       dropout_);
}

}  // namespace nunchi::nn
