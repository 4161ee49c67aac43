// One step of an LSTM or a GRU for one sentence, one element at a time.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "nunchi/kernels/recurrent.h"

namespace nunchi::reference {

inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }

struct RecurrentCell {
  kernels::CellKind cell;
  std::int64_t width;
  std::vector<double> weight, bias;  // [G · H, H], [G · H]
};

struct RecurrentState {
  std::vector<double> h, c;  // [H]
};

// The next state. `a` [G · H] is the input's term of the gates, as in kernels/recurrent.h.
inline RecurrentState next_state(const RecurrentCell& p, const std::vector<double>& a,
                                 const RecurrentState& previous) {
  const auto H = static_cast<std::size_t>(p.width);
  std::vector<double> b(p.bias);
  for (std::size_t g = 0; g < b.size(); ++g) {
    for (std::size_t j = 0; j < H; ++j) b[g] += p.weight[g * H + j] * previous.h[j];
  }
  RecurrentState next{std::vector<double>(H), std::vector<double>(H)};
  for (std::size_t j = 0; j < H; ++j) {
    const auto sum = [&](std::size_t gate) { return a[gate * H + j] + b[gate * H + j]; };
    if (p.cell == kernels::CellKind::lstm) {
      next.c[j] = logistic(sum(1)) * previous.c[j] + logistic(sum(0)) * std::tanh(sum(2));
      next.h[j] = logistic(sum(3)) * std::tanh(next.c[j]);
    } else {
      const double reset = logistic(sum(0)), update = logistic(sum(1));
      const double candidate = std::tanh(a[2 * H + j] + reset * b[2 * H + j]);
      next.h[j] = (1 - update) * candidate + update * previous.h[j];
    }
  }
  return next;
}

}  // namespace nunchi::reference
