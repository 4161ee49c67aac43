// Tokens to rows: table × scale + position + dropout, in one pass.
#pragma once

#include "nunchi/autograd/variable.h"
#include "nunchi/ops/dropout.h"
#include "nunchi/tensor/ragged.h"

namespace nunchi {

namespace kernels {
struct ExtendSlots;
}

struct Embedding {
  Variable table;  // [V, C]
  double scale = 1;
  Variable positions;  // [P, C], P at least the longest sentence; undefined: nothing is added
  Dropout dropout;
};

// ids i32 [capacity], each in [0, V) → [capacity, C]
Variable embedding(const Tensor& ids, const Ragged& batch, const Embedding& parameters);

// Embeds the new tokens of a decode step; the same kernel assigns their slots. Inference only:
// throws Error while a tape records.
Tensor embed_step(const Tensor& ids, const Ragged& batch, const Embedding& parameters,
                  const kernels::ExtendSlots& slots);

// dropout(rows + positions) for rows [capacity, C] that are already embedded; undefined positions
// are not added.
Variable add_positions(const Variable& rows, const Ragged& batch, const Variable& positions,
                       const Dropout& dropout);

}  // namespace nunchi
