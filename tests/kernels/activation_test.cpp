#include "nunchi/kernels/activation.h"

#include "tests/reference/activation.h"
#include "tests/reference/versions.h"

namespace nunchi::testing {
namespace {

using kernels::Activation;
using kernels::ActivationBackward;
using kernels::ActivationKind;

constexpr ActivationKind kKinds[] = {
    ActivationKind::none,   ActivationKind::relu, ActivationKind::gelu, ActivationKind::gelu_tanh,
    ActivationKind::swiglu, ActivationKind::tanh, ActivationKind::geglu};
const RandomKey kKey{.seed = 1, .step = 2};

template <class T>
struct Problem {
  Problem(ActivationKind kind, const Batch& batch, std::int64_t width, float dropout,
          double scale = 4)
      : batch(batch),
        x(random_values<T>(batch.capacity * input_width(kind, width), 1, scale)),
        out(unwritten<T>(batch.capacity * width)),
        d_out(random_values<T>(batch.capacity * width, 2)),
        d_x(unwritten<T>(batch.capacity * input_width(kind, width))),
        forward{.kind = kind,
                .rows = batch.rows(),
                .width = width,
                .dropout = {.probability = dropout, .operation_id = 5, .key = &kKey},
                .x = x.data(),
                .out = out.data()},
        backward{.kind = kind,
                 .rows = batch.rows(),
                 .width = width,
                 .dropout = forward.dropout,
                 .x = x.data(),
                 .d_out = d_out.data(),
                 .d_x = d_x.data()} {}

  const Batch& batch;
  std::vector<T> x, out, d_out, d_x;
  Activation<T> forward;
  ActivationBackward<T> backward;
};

template <class T>
void expect_agreement(CpuContext& ctx, Problem<T>& p, double tolerance = kTolerance<T>) {
  const std::vector<double> out = reference::activation(p.forward);
  const std::vector<double> d_x = reference::activation_backward(p.backward);
  kernels::run(ctx, p.forward);
  kernels::run(ctx, p.backward);
  expect_close("out", p.out, out, tolerance);
  expect_finite_from("out", p.out, static_cast<std::int64_t>(out.size()));
  expect_close("d_x", p.d_x, d_x, tolerance);
  expect_zero_from("d_x", p.d_x, static_cast<std::int64_t>(d_x.size()));
}

TEST(Activation, ForwardAndBackwardMatchTheReference) {
  const Batch batch(kLengths, 32);
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    for (const ActivationKind kind : kKinds) {
      for (const std::int64_t width : kWidths) {
        for (const float dropout : {0.0f, 0.1f}) {
          SCOPED_TRACE(static_cast<int>(kind));
          Problem<T> p(kind, batch, width, dropout);
          expect_agreement<T>(ctx, p);
        }
      }
    }
  });
}

TEST(Activation, IsAccurateFarFromZero) {
  const Batch batch({31});
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    for (const ActivationKind kind : kKinds) {
      SCOPED_TRACE(static_cast<int>(kind));
      Problem<T> p(kind, batch, 37, 0, 300);
      expect_agreement<T>(ctx, p);
    }
  });
}

TEST(Activation, SmallNumbersKeepTheirRelativeAccuracy) {
  const Batch batch({31});
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    for (const ActivationKind kind : kKinds) {
      Problem<T> p(kind, batch, 37, 0, 1e-6);
      const std::vector<double> out = reference::activation(p.forward);
      kernels::run(ctx, p.forward);
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_NEAR(p.out[i], out[i], kTolerance<T> * std::fabs(out[i])) << static_cast<int>(kind);
      }
    }
  });
}

TEST(Activation, ReferenceDerivativeMatchesFiniteDifferences) {
  constexpr double kStep = 1e-5;
  for (const ActivationKind kind : kKinds) {
    for (double x = -5.03; x < 5; x += 0.1) {
      const double rise =
          reference::activation(kind, x + kStep) - reference::activation(kind, x - kStep);
      EXPECT_NEAR(rise / (2 * kStep), reference::activation_derivative(kind, x), 1e-9);
    }
  }
}

TEST(Activation, ReluBackwardAcceptsItsOutputForItsInput) {
  const Batch batch(kLengths, 32);
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    Problem<T> p(ActivationKind::relu, batch, 37, 0.5f);
    const std::vector<double> d_x = reference::activation_backward(p.backward);
    kernels::run(ctx, p.forward);
    p.backward.x = p.out.data();
    kernels::run(ctx, p.backward);
    expect_close("d_x", p.d_x, d_x);
  });
}

TEST(Activation, GradientMayBeComputedInPlace) {
  const Batch batch(kLengths, 32);
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    for (const ActivationKind kind : kKinds) {
      if (kernels::is_gated(kind)) continue;
      Problem<T> p(kind, batch, 20, 0.1f);
      const std::vector<double> d_x = reference::activation_backward(p.backward);
      p.backward.d_x = p.d_out.data();
      kernels::run(ctx, p.backward);
      expect_close("d_x", p.d_out, d_x);
      expect_zero_from("d_x", p.d_out, static_cast<std::int64_t>(d_x.size()));
    }
  });
}

TEST(Activation, NumberOfThreadsDoesNotChangeBits) {
  const Batch batch(kLengths, 32);
  expect_same_bits_for_any_threads([&]<class T>(CpuContext& ctx) {
    std::vector<T> results;
    for (const ActivationKind kind : kKinds) {
      Problem<T> p(kind, batch, 130, 0.1f);
      kernels::run(ctx, p.forward);
      kernels::run(ctx, p.backward);
      results.insert(results.end(), p.out.begin(), p.out.end());
      results.insert(results.end(), p.d_x.begin(), p.d_x.end());
    }
    return results;
  });
}

}  // namespace
}  // namespace nunchi::testing
