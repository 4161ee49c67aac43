#include "nunchi/nn/embedding.h"

#include <cmath>

namespace nunchi::nn {

Embedding::Embedding(Parameters& parameters, Variable table, const Options& options)
    : table_(std::move(table)),
      scale_(options.scaled ? std::sqrt(static_cast<double>(options.width)) : 1),
      dropout_{options.dropout, parameters.next_operation_id()} {}

nunchi::Embedding Embedding::parameters(const Tensor& ids, const Ragged& batch,
                                        const Position& position) const {
  return {.table = table_,
          .scale = scale_,
          .positions = position.embed(ids.context(), batch.max_length),
          .dropout = dropout_};
}

Variable Embedding::operator()(const Tensor& ids, const Ragged& batch,
                               const Position& position) const {
  return embedding(ids, batch, parameters(ids, batch, position));
}

Variable Embedding::step(const Tensor& ids, const Ragged& rows, const Position& position,
                         const kernels::ExtendSlots& slots) const {
  return Variable(embed_step(ids, rows, parameters(ids, rows, position), slots));
}

}  // namespace nunchi::nn
