// A stack of recurrent layers: GRU or LSTM, unidirectional or bidirectional.
//
// Each direction of a bidirectional layer has half of the width, so that a layer's output and its
// final state have the width that the next layer and the decoder expect. The GEMMs of a time step
// are half as large in total.
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
  std::int64_t width = 0;  // C, both input and output
  bool bidirectional = false;
  float dropout = 0;  // between layers
};

class RecurrentStack {
 public:
  RecurrentStack(Parameters& parameters, const std::string& name, const RecurrentConfig& config);

  struct Result {
    Variable out;                      // [T, C] output of the top layer
    std::vector<RecurrentState> last;  // final state of each layer, [B, C]
  };
  // x [T, C]; `initial` has a state for each layer, or is empty: zeros.
  Result operator()(const Variable& x, const Ragged& batch,
                    const std::vector<RecurrentState>& initial = {}) const;
  // One token per row, x [R, C]: reads each layer's states `before` and writes its states `after`
  // (recurrent_step). Returns the top layer's new hidden states, [R, C].
  Variable step(const Variable& x, const Ragged& rows, const std::vector<StateRows>& before,
                const std::vector<StateRows>& after) const;

 private:
  std::string name_;
  std::vector<RecurrentLayer> layers_;
  std::vector<Dropout> dropouts_;  // on the input of each layer but the first
};

}  // namespace nunchi::nn
