#include "nunchi/nn/embedding.h"

#include <cmath>

namespace nunchi::nn {

Embedding::Embedding(Parameters& parameters, Variable table, const Options& options)
    : table_(std::move(table)),
      scale_(options.scaled ? std::sqrt(static_cast<double>(options.width)) : 1),
      dropout_{options.dropout, parameters.next_place()} {}

Variable Embedding::operator()(const Tensor& ids, const Ragged& batch,
                               const Position& position) const {
  return embedding(ids, batch,
                   {.table = table_,
                    .scale = scale_,
                    .positions = position.embed(batch.max_length),
                    .dropout = dropout_});
}

}  // namespace nunchi::nn
