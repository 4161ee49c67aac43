#include "nunchi/nn/feature_embedding.h"

#include "nunchi/ops/embedding.h"
#include "nunchi/ops/tensors.h"

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
  return add_positions(projection_(Variable(rows)), batch,
                       position.embed(values.context(), batch.max_length), dropout_);
}

}  // namespace nunchi::nn
