// A linear layer: weight [N, K] and, if it has one, bias [N].
#pragma once

#include "nunchi/nn/parameters.h"
#include "nunchi/ops/linear.h"

namespace nunchi::nn {

class Linear {
 public:
  struct Options {
    std::int64_t inputs = 0;
    std::int64_t outputs = 0;
    // The weight may be several matrices on top of one another (Q, K and V); each starts on its
    // own.
    std::int64_t stacked = 1;
    bool bias = true;
    // The first rows of the weight may start smaller: queries whose scores nobody scales.
    std::int64_t first_rows = 0;
    double first_factor = 1;
  };
  Linear(Parameters& parameters, const std::string& name, const Options& options);

  Variable operator()(const Variable& x) const { return linear(x, parameters_); }
  const nunchi::Linear& parameters() const { return parameters_; }

 private:
  nunchi::Linear parameters_;
};

}  // namespace nunchi::nn
