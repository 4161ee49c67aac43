// The activation functions as their papers define them, and their derivatives.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "nunchi/kernels/activation.h"
#include "tests/reference/dropout.h"

namespace nunchi::reference {

constexpr double kPi = 3.14159265358979323846;

// f(x); for the gated kinds, f of the gate (the first half of a row).
inline double activation(kernels::ActivationKind kind, double x) {
  using Kind = kernels::ActivationKind;
  switch (kind) {
    case Kind::none:
      return x;
    case Kind::relu:
      return x > 0 ? x : 0;
    case Kind::gelu:
      return x * std::erfc(-x / std::sqrt(2)) / 2;
    case Kind::gelu_tanh:
    case Kind::geglu:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x)));
    case Kind::swiglu:
      return x / (1 + std::exp(-x));
    case Kind::tanh:
      return std::tanh(x);
  }
  return NAN;
}

inline double activation_derivative(kernels::ActivationKind kind, double x) {
  using Kind = kernels::ActivationKind;
  switch (kind) {
    case Kind::none:
      return 1;
    case Kind::relu:
      return x > 0 ? 1 : 0;
    case Kind::gelu:
      return std::erfc(-x / std::sqrt(2)) / 2 + x * std::exp(-x * x / 2) / std::sqrt(2 * kPi);
    case Kind::gelu_tanh:
    case Kind::geglu: {
      const double t = std::tanh(std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x));
      return (1 + t) / 2 + x / 2 * (1 - t * t) * std::sqrt(2 / kPi) * (1 + 3 * 0.044715 * x * x);
    }
    case Kind::swiglu: {
      const double s = 1 / (1 + std::exp(-x));
      return s + x * s * (1 - s);
    }
    case Kind::tanh:
      return 1 - std::tanh(x) * std::tanh(x);
  }
  return NAN;
}

template <class T>
std::vector<double> activation(const kernels::Activation<T>& p) {
  std::vector<double> out;
  for (std::int64_t r = 0; r < row_count(p.rows); ++r) {
    const T* x = p.x + r * input_width(p.kind, p.width);
    for (std::int64_t i = 0; i < p.width; ++i) {
      const double linear = kernels::is_gated(p.kind) ? x[p.width + i] : 1.0;
      out.push_back(activation(p.kind, x[i]) * linear * dropout_factor(p.dropout, p.rows, r, i));
    }
  }
  return out;
}

template <class T>
std::vector<double> activation_backward(const kernels::ActivationBackward<T>& p) {
  const std::int64_t in_width = input_width(p.kind, p.width);
  std::vector<double> d_x(static_cast<std::size_t>(row_count(p.rows) * in_width));
  for (std::int64_t r = 0; r < row_count(p.rows); ++r) {
    const T* x = p.x + r * in_width;
    for (std::int64_t i = 0; i < p.width; ++i) {
      const double d = p.d_out[r * p.width + i] * dropout_factor(p.dropout, p.rows, r, i);
      const double derivative = activation_derivative(p.kind, x[i]);
      if (kernels::is_gated(p.kind)) {
        d_x[r * in_width + i] = d * derivative * x[p.width + i];
        d_x[r * in_width + p.width + i] = d * activation(p.kind, x[i]);
      } else {
        d_x[r * in_width + i] = d * derivative;
      }
    }
  }
  return d_x;
}

}  // namespace nunchi::reference
