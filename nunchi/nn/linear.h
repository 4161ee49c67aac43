// A linear layer: weight [N, K] and an optional bias [N].
#pragma once

#include "nunchi/nn/parameters.h"
#include "nunchi/ops/residual_stream.h"

namespace nunchi::nn {

// How the matrices of a layer are initialised: normal with these standard deviations; 0: Xavier
// uniform (Glorot and Bengio).
struct MatrixInit {
  double deviation = 0;
  double branch_deviation = 0;  // for matrices whose output is added to the residual stream
};

class Linear {
 public:
  struct Options {
    std::int64_t inputs = 0;
    std::int64_t outputs = 0;
    // The weight may stack several matrices (Q, K and V). Xavier initialisation takes outputs /
    // stacked as the number of outputs of each.
    std::int64_t stacked = 1;
    bool bias = true;
    // Xavier initialisation multiplies the first `first_rows` rows of the weight by `first_factor`.
    std::int64_t first_rows = 0;
    double first_factor = 1;
    // Initialises the whole weight from a normal distribution with this standard deviation; 0:
    // Xavier uniform.
    double deviation = 0;
  };
  Linear(Parameters& parameters, const std::string& name, const Options& options);

  // [T, inputs] → [T, outputs]
  Variable operator()(const Variable& x) const { return linear(x, parameters_); }
  Variable operator()(LazyNorm& x) const { return linear(x, parameters_); }
  const nunchi::Linear& parameters() const { return parameters_; }

 private:
  nunchi::Linear parameters_;
};

}  // namespace nunchi::nn
