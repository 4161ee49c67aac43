// Recurrent layers, one above the other: GRU or LSTM, in one direction or in both.
//
// In both directions each has half of the width, so that a layer's output and its last state have
// the width that the next layer and the decoder expect, and a step's product is half as large.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nunchi/nn/parameters.h"
#include "nunchi/ops/dropout.h"
#include "nunchi/ops/recurrent.h"

namespace nunchi::nn {

struct RecurrentConfig {
  CellKind cell = CellKind::gru;
  int layers = 1;
  std::int64_t width = 0;  // C, of input and output
  bool bidirectional = false;
  float dropout = 0;  // between layers
};

class RecurrentStack {
 public:
  RecurrentStack(Parameters& parameters, const std::string& name, const RecurrentConfig& config);

  struct Result {
    Variable out;                      // [T, C] of the uppermost layer
    std::vector<RecurrentState> last;  // of each layer, [B, C]
  };
  // x [T, C]; `first` has a state for each layer, or is empty: zeros.
  Result operator()(const Variable& x, const Ragged& batch,
                    const std::vector<RecurrentState>& first = {}) const;
  // One token a row, x [R, C]: see recurrent_step. Returns the uppermost layer's states, [R, C].
  Variable step(const Variable& x, const Ragged& rows, const std::vector<StateRows>& before,
                const std::vector<StateRows>& after) const;

 private:
  std::string name_;
  std::vector<RecurrentLayer> layers_;
  std::vector<Dropout> dropouts_;  // below each layer but the first
};

}  // namespace nunchi::nn
