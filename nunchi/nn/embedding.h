// Token embeddings: a table, × √C, with positions and dropout.
#pragma once

#include "nunchi/nn/position/position.h"
#include "nunchi/ops/embedding.h"

namespace nunchi::nn {

class Embedding {
 public:
  // The table is made by the model, which may share it.
  Embedding(Parameters& parameters, Variable table, std::int64_t width, float dropout);

  // ids i32 [capacity] → [capacity, C]
  Variable operator()(const Tensor& ids, const Ragged& batch, const Position& position) const;

 private:
  Variable table_;
  double scale_;
  Dropout dropout_;
};

}  // namespace nunchi::nn
