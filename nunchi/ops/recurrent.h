// A recurrent layer over the sentences of a batch, in one direction or in both.
#pragma once

#include <array>

#include "nunchi/kernels/recurrent.h"
#include "nunchi/ops/linear.h"
#include "nunchi/tensor/ragged.h"

namespace nunchi {

using kernels::CellKind;

// With D directions (1 or 2), H columns each and G gates.
struct RecurrentLayer {
  CellKind cell = CellKind::gru;
  Linear input;                  // [D · G · H, K], [D · G · H]: one product for both directions
  std::array<Linear, 2> hidden;  // [G · H, H], [G · H]; the second runs backwards, or is undefined
};

// The state of each sentence; directions side by side. Only lstm has `c`, in the
// accumulator's type.
struct RecurrentState {
  Variable h;  // [B, D · H]; undefined: zeros
  Variable c;  // [B, D · H]
};

struct RecurrentResult {
  Variable out;         // [T, D · H]: the state after each token
  RecurrentState last;  // after each sentence's last token; in the reverse direction, its first
};

// x [T, K], T = batch.capacity.
RecurrentResult recurrent(const Variable& x, const RecurrentLayer& layer, const Ragged& batch,
                          const RecurrentState& initial = {});

// The states of a decode step's rows.
struct StateRows {
  Tensor h;  // [R, H]
  Tensor c;  // [R, H]; only for lstm
};
// One decode step: computes `next`, whose tensors the caller allocates, from x [R, K] and
// `previous`. One direction; not recorded.
void recurrent_step(const Tensor& x, const RecurrentLayer& layer, const Ragged& rows,
                    const StateRows& previous, const StateRows& next);

}  // namespace nunchi
