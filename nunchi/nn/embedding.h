// Token embeddings: rows of a table, optionally × √C, plus positions, then dropout.
#pragma once

#include <string_view>

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
  // The model adds `table` [V, C] to its parameters and may share it with other layers.
  Embedding(Parameters& parameters, Variable table, const Options& options);

  // ids i32 [capacity] → [capacity, C]. `stack` names the stack that reads them in a trace.
  Variable operator()(const Tensor& ids, const Ragged& batch, const Position& position,
                      std::string_view stack) const;
  // The same for the new tokens of a decode step. The kernel also assigns their cache slots.
  Variable step(const Tensor& ids, const Ragged& rows, const Position& position,
                const kernels::ExtendSlots& slots) const;

 private:
  nunchi::Embedding parameters(const Tensor& ids, const Ragged& batch,
                               const Position& position) const;
  void trace(const Tensor& ids, const Ragged& batch, const Position& position,
             std::string_view stack) const;

  Variable table_;
  double scale_;
  Dropout dropout_;
};

// Writes the rows of the positions that are added to a batch to the context's trace.
void trace_positions(ContextBase& context, const Ragged& batch, const Position& position,
                     std::string_view stack);

}  // namespace nunchi::nn
