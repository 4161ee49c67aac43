// Compares gradients with central differences in f64. All gradients must agree within 1e-6.
#pragma once

#include <functional>

#include "nunchi/autograd/tape.h"
#include "nunchi/nn/parameters.h"
#include "tests/support.h"

namespace nunchi::testing {

struct Leaf {
  std::string name;
  Variable variable;
};

// A leaf with memory for its gradient, like a parameter.
inline Leaf leaf(ContextBase& context, const std::string& name, const Shape& shape,
                 std::uint64_t seed, double scale = 1) {
  Variable variable(Tensor(), true);
  variable.bind(random_tensor<double>(context, shape, seed, scale),
                zeros(context, DType::f64, shape));
  variable.share_version(std::make_shared<std::uint64_t>(1));
  return {name, variable};
}

// |gradient - expected| / max(|expected|, 1e-3)
inline double relative_error(const std::vector<double>& gradient,
                             const std::vector<double>& expected) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += (gradient[i] - expected[i]) * (gradient[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference) / std::max(std::sqrt(norm), 1e-3);
}

// d value / d leaf by central differences. Restores the leaf's values.
inline std::vector<double> numerical_gradient(const Leaf& leaf,
                                              const std::function<double()>& value) {
  constexpr double kStep = 1e-5;
  const Tensor& tensor = leaf.variable.value();
  std::vector<double> x = to_host<double>(tensor), gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double original = x[i];
    const auto value_at = [&](double element) {
      x[i] = element;
      copy_from_host(std::span<const double>(x), tensor);
      return value();
    };
    gradient[i] = (value_at(original + kStep) - value_at(original - kStep)) / (2 * kStep);
    x[i] = original;
  }
  copy_from_host(std::span<const double>(x), tensor);
  return gradient;
}

// An estimate of the error of a leaf's `gradient`, relative to max(|gradient|, 1e-3). It compares
// directional derivatives along a few random directions of ones and minus ones instead of every
// element: the mean square of their errors is the squared norm of the gradient's error.
inline double probed_error(const Leaf& leaf, const std::vector<double>& gradient,
                           const std::function<double()>& value) {
  constexpr std::uint64_t kProbes = 6;
  if (gradient.size() <= 2 * kProbes) {
    return relative_error(gradient, numerical_gradient(leaf, value));
  }
  const Tensor& tensor = leaf.variable.value();
  const std::vector<double> x = to_host<double>(tensor);
  const double step = 1e-5 / std::pow(static_cast<double>(x.size()), 0.25);
  double squares = 0, norm = 0;
  for (const double g : gradient) norm += g * g;
  for (std::uint64_t probe = 0; probe < kProbes; ++probe) {
    std::vector<double> direction = random_values<double>(tensor.elements(), 700 + probe);
    double expected = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      direction[i] = direction[i] < 0 ? -1 : 1;
      expected += direction[i] * gradient[i];
    }
    const auto value_at = [&](double distance) {
      std::vector<double> moved = x;
      for (std::size_t i = 0; i < x.size(); ++i) moved[i] += distance * direction[i];
      copy_from_host(std::span<const double>(moved), tensor);
      return value();
    };
    squares += std::pow((value_at(step) - value_at(-step)) / (2 * step) - expected, 2);
  }
  copy_from_host(std::span<const double>(x), tensor);
  return std::sqrt(squares / kProbes) / std::max(std::sqrt(norm), 1e-3);
}

// Checks d loss / d parameter for all parameters of a model.
inline void expect_gradients(ContextBase& context, const nn::Parameters& parameters,
                             const std::function<Variable()>& loss) {
  const auto record_loss = [&](auto&& use) {
    context.set_random_key({.seed = 5, .step = 2});
    const ModeScope scope(context, Mode::training);
    Tape tape(context);
    return use(tape, loss());
  };
  record_loss([](Tape& tape, const Variable& total) { tape.backward(total); });
  // Copied now, because recording the loss again adds to gradients even in the forward pass.
  std::vector<std::vector<double>> gradients;
  for (const nn::ParameterEntry& entry : parameters.entries()) {
    gradients.push_back(to_host<double>(entry.variable.gradient()));
  }
  const auto value = [&] {
    return record_loss(
        [](Tape&, const Variable& total) { return to_host<double>(total.value())[0]; });
  };
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const nn::ParameterEntry& entry = parameters.entries()[i];
    EXPECT_LE(probed_error({entry.name, entry.variable}, gradients[i], value), 1e-6) << entry.name;
  }
}

// Checks d (output · seed) / d leaf for every leaf of an operation's output [R, C]; only the first
// `rows` rows are real.
inline void expect_gradients(ContextBase& context, const std::vector<Leaf>& leaves,
                             std::int64_t rows, const std::function<Variable()>& output) {
  std::vector<double> seed;
  const ModeScope scope(context, Mode::training);
  const auto value = [&] {
    const std::vector<double> values = to_host<double>(output().value());
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += seed[i] * values[i];
    return sum;
  };
  {
    Tape tape(context);
    const Variable out = output();
    const Tensor& tensor = out.value();
    seed = random_values<double>(tensor.elements(), 99);
    const auto width = static_cast<std::size_t>(tensor.size(1));
    for (std::size_t i = static_cast<std::size_t>(rows) * width; i < seed.size(); ++i) seed[i] = 0;
    tape.backward(out, from_host(context, seed, tensor.shape()));
  }
  for (const Leaf& leaf : leaves) {
    const std::vector<double> gradient = to_host<double>(leaf.variable.gradient());
    EXPECT_LE(relative_error(gradient, numerical_gradient(leaf, value)), 1e-6) << leaf.name;
  }
}

}  // namespace nunchi::testing
