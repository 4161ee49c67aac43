// A linear layer: weight [N, K] and, if it has one, bias [N].
#pragma once

#include "nunchi/nn/parameters.h"
#include "nunchi/ops/residual_stream.h"

namespace nunchi::nn {

// How the matrices of a layer are initialised: normal with these standard deviations; 0: uniform by
// Glorot and Bengio.
struct MatrixInit {
  double deviation = 0;
  double branch_deviation = 0;  // of the matrix whose product is added to the residual stream
};

class Linear {
 public:
  struct Options {
    std::int64_t inputs = 0;
    std::int64_t outputs = 0;
    // The weight may be several matrices on top of one another (Q, K and V), each of which is
    // initialised as a matrix of its own.
    std::int64_t stacked = 1;
    bool bias = true;
    // The first rows of the weight may start with another scale: queries of unscaled scores.
    std::int64_t first_rows = 0;
    double first_factor = 1;
    // Initialises the whole weight from a normal distribution of this standard deviation; 0:
    // uniform by Glorot and Bengio.
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
