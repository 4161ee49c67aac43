// A recurrent layer over the sentences of a batch, in one direction or in both at once.
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
  RecurrentState last;  // after each sentence's last token, or its first in the reverse direction
};

// x [T, K], T = batch.capacity.
RecurrentResult recurrent(const Variable& x, const RecurrentLayer& layer, const Ragged& batch,
                          const RecurrentState& first = {});

// One step of a decoder: row r of x [R, K] and its state `before` [R, H] give its state `after`,
// whose memory exists already. One direction; not recorded.
struct StateRows {
  Tensor h;  // [R, H]
  Tensor c;  // [R, H] of lstm
};
void recurrent_step(const Tensor& x, const RecurrentLayer& layer, const Ragged& rows,
                    const StateRows& before, const StateRows& after);

}  // namespace nunchi
