// Token embeddings: a table, × √C if asked for, with positions and dropout.
#pragma once

#include "nunchi/nn/position/position.h"
#include "nunchi/ops/embedding.h"

namespace nunchi::nn {

class Embedding {
 public:
  struct Options {
    std::int64_t width = 0;  // C
    bool scaled = true;      // rows are multiplied by √C
    float dropout = 0;
  };
  // The table is made by the model, which may share it.
  Embedding(Parameters& parameters, Variable table, const Options& options);

  // ids i32 [capacity] → [capacity, C]
  Variable operator()(const Tensor& ids, const Ragged& batch, const Position& position) const;
  // The same for the new tokens of a decode step, whose slots the same kernel assigns.
  Variable step(const Tensor& ids, const Ragged& rows, const Position& position,
                const kernels::ExtendSlots& slots) const;

 private:
  nunchi::Embedding parameters(const Tensor& ids, const Ragged& batch,
                               const Position& position) const;

  Variable table_;
  double scale_;
  Dropout dropout_;
};

}  // namespace nunchi::nn
