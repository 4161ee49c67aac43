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

// The state of each sentence; directions side by side. `c` belongs to lstm alone and is kept in
// what the rest is summed in.
struct RecurrentState {
  Variable h;  // [B, D · H]; undefined: zeros
  Variable c;  // [B, D · H]
};

struct RecurrentResult {
  Variable out;         // [T, D · H]: the state after each token
  RecurrentState last;  // after each sentence's last token; going backwards, after its first
};

// x [T, K], T = batch.capacity.
RecurrentResult recurrent(const Variable& x, const RecurrentLayer& layer, const Ragged& batch,
                          const RecurrentState& first = {});

// One token for each row, on and on: rows of x [R, K] meet the states [R, H] before them and leave
// those after them, in memory that is there already. One direction; not recorded.
struct StateRows {
  Tensor h;  // [R, H]
  Tensor c;  // [R, H] of lstm
};
void recurrent_step(const Tensor& x, const RecurrentLayer& layer, const Ragged& rows,
                    const StateRows& before, const StateRows& after);

}  // namespace nunchi
