#include "nunchi/kernels/norm.h"

#include "tests/reference/norm.h"
#include "tests/reference/versions.h"

namespace nunchi::testing {
namespace {

using kernels::NormKind;
using kernels::ResidualNorm;
using kernels::ResidualNormBackward;

const RandomKey kKey{.seed = 7, .step = 3};
constexpr std::int64_t kSpare = 32;

// Buffers of a norm and its backward pass. Rows past the count hold numbers that must not matter.
template <class T>
struct Problem {
  Problem(const Batch& batch, std::int64_t width)
      : batch(batch), width(width), elements(batch.capacity * width) {}

  ResidualNorm<T> forward(NormKind kind, float dropout = 0) {
    return {.kind = kind,
            .rows = batch.rows(),
            .width = width,
            .dropout = {.probability = dropout, .operation_id = 11, .key = &kKey},
            .residual = residual.data(),
            .branch = branch.data(),
            .gamma = gamma.data(),
            .beta = kind == NormKind::layer ? beta.data() : nullptr,
            .sum = sum.data(),
            .out = out.data(),
            .mean = mean.data(),
            .rstd = rstd.data()};
  }

  ResidualNormBackward<T> backward(NormKind kind, float dropout = 0) {
    return {.kind = kind,
            .rows = batch.rows(),
            .width = width,
            .dropout = {.probability = dropout, .operation_id = 11, .key = &kKey},
            .sum = sum.data(),
            .gamma = gamma.data(),
            .mean = mean.data(),
            .rstd = rstd.data(),
            .d_out = d_out.data(),
            .d_sum = d_sum.data(),
            .d_residual = d_residual.data(),
            .d_branch = d_branch.data(),
            .d_gamma = d_gamma.data(),
            .d_beta = kind == NormKind::layer ? d_beta.data() : nullptr};
  }

  const Batch& batch;
  std::int64_t width, elements;
  std::int64_t real = batch.count * width;
  std::vector<T> residual = random_values<T>(elements, 1, 2),
                 branch = random_values<T>(elements, 2);
  std::vector<T> gamma = random_values<T>(width, 3, 2), beta = random_values<T>(width, 4);
  std::vector<T> sum = unwritten<T>(elements), out = unwritten<T>(elements);
  std::vector<T> mean = unwritten<T>(batch.capacity), rstd = unwritten<T>(batch.capacity);
  std::vector<T> d_out = random_values<T>(elements, 5), d_sum = random_values<T>(elements, 6);
  std::vector<T> d_residual = unwritten<T>(elements), d_branch = unwritten<T>(elements);
  std::vector<T> d_gamma = random_values<T>(width, 7), d_beta = random_values<T>(width, 8);
};

template <class T>
void expect_forward(CpuContext& ctx, Problem<T>& x, const ResidualNorm<T>& p) {
  const reference::Norm expected = reference::residual_norm(p);
  kernels::run(ctx, p);
  expect_close("out", x.out, expected.out);
  expect_close("mean", x.mean, expected.mean);
  expect_close("rstd", x.rstd, expected.rstd);
  expect_finite_from("out", x.out, x.real);
  if (p.branch == nullptr) return;
  expect_close("sum", x.sum, expected.sum);
  expect_finite_from("sum", x.sum, x.real);
}

template <class T>
void expect_backward(CpuContext& ctx, Problem<T>& x, const ResidualNormBackward<T>& p) {
  const reference::NormGradients expected = reference::residual_norm_backward(p);
  kernels::run(ctx, p);
  const double tolerance = 2 * kTolerance<T>;
  if (p.d_residual != nullptr) {
    expect_close("d_residual", x.d_residual, expected.d_residual, tolerance);
    if (!p.accumulate_residual) expect_zero_from("d_residual", x.d_residual, x.real);
  }
  if (p.d_branch != nullptr) {
    expect_close("d_branch", x.d_branch, expected.d_branch, tolerance);
    expect_zero_from("d_branch", x.d_branch, x.real);
  }
  expect_close("d_gamma", x.d_gamma, expected.d_gamma, tolerance);
  if (p.d_beta != nullptr) expect_close("d_beta", x.d_beta, expected.d_beta, tolerance);
}

TEST(Norm, MatchesTheReference) {
  const Batch batch(kLengths, kSpare);
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    for (const std::int64_t width : kWidths) {
      for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
        for (const float dropout : {0.0f, 0.1f}) {
          Problem<T> x(batch, width);
          expect_forward<T>(ctx, x, x.forward(kind, dropout));
        }
      }
    }
  });
}

TEST(Norm, WithoutABranchTheSumIsNotWritten) {
  const Batch batch(kLengths, kSpare);
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
      Problem<T> x(batch, 37);
      ResidualNorm<T> p = x.forward(kind, 0.5f);
      p.branch = nullptr;
      expect_forward<T>(ctx, x, p);
      for (const T v : x.sum) ASSERT_TRUE(std::isnan(v));
    }
  });
}

TEST(Norm, EpsilonKeepsAConstantRowFinite) {
  const Batch batch({2});
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    Problem<T> x(batch, 20);
    std::fill(x.residual.begin(), x.residual.end(), T(3));
    ResidualNorm<T> p = x.forward(NormKind::layer);
    p.branch = nullptr;
    p.epsilon = 1e-6;
    kernels::run(ctx, p);
    EXPECT_NEAR(x.rstd[0], 1e3, 1e-2);
    expect_close("out", subrange(x.out, 0, 20), std::vector<double>(x.beta.begin(), x.beta.end()));
  });
}

TEST(Norm, LargeMeanCostsFewDigits) {
  const Batch batch({33});
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    Problem<T> x(batch, 130);
    for (T& v : x.residual) v += T(1000);
    const ResidualNorm<T> p = x.forward(NormKind::layer);
    const reference::Norm expected = reference::residual_norm(p);
    kernels::run(ctx, p);
    expect_close("out", x.out, expected.out, 100 * kTolerance<T>);
  });
}

TEST(NormBackward, MatchesTheJacobian) {
  const Batch batch(kLengths, kSpare);
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    for (const std::int64_t width : kWidths) {
      for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
        for (const float dropout : {0.0f, 0.1f}) {
          Problem<T> x(batch, width);
          kernels::run(ctx, x.forward(kind, dropout));
          expect_backward<T>(ctx, x, x.backward(kind, dropout));
        }
      }
    }
  });
}

TEST(NormBackward, SkipsGradientsThatAreNotWanted) {
  const Batch batch(kLengths, kSpare);
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    for (int missing = 1; missing < 8; ++missing) {
      Problem<T> x(batch, 20);
      kernels::run(ctx, x.forward(NormKind::layer, 0.5f));
      ResidualNormBackward<T> p = x.backward(NormKind::layer, 0.5f);
      if ((missing & 1) != 0) p.d_sum = nullptr;
      if ((missing & 2) != 0) p.d_branch = nullptr;
      if ((missing & 4) != 0) p.d_residual = nullptr;
      expect_backward<T>(ctx, x, p);
    }
  });
}

TEST(NormBackward, AccumulatesTheResidualGradientOnRequest) {
  const Batch batch(kLengths, kSpare);
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    Problem<T> x(batch, 37);
    kernels::run(ctx, x.forward(NormKind::layer));
    x.d_residual = random_values<T>(x.elements, 9);
    std::fill(x.d_residual.begin() + x.real, x.d_residual.end(), T(0));
    ResidualNormBackward<T> p = x.backward(NormKind::layer);
    p.accumulate_residual = true;
    expect_backward<T>(ctx, x, p);
    expect_zero_from("d_residual", x.d_residual, x.real);
  });
}

// Everything that forward and backward write, concatenated.
template <class T>
std::vector<T> all_results(CpuContext& ctx, const Batch& batch, std::int64_t width) {
  Problem<T> x(batch, width);
  kernels::run(ctx, x.forward(NormKind::layer, 0.1f));
  kernels::run(ctx, x.backward(NormKind::layer, 0.1f));
  std::vector<T> results = subrange(x.out, 0, x.real);
  for (const auto& values : {subrange(x.sum, 0, x.real), subrange(x.d_residual, 0, x.real),
                             subrange(x.d_branch, 0, x.real), x.d_gamma, x.d_beta}) {
    results.insert(results.end(), values.begin(), values.end());
  }
  return results;
}

TEST(Norm, NumberOfThreadsDoesNotChangeBits) {
  const Batch batch(kLengths, kSpare);
  expect_same_bits_for_any_threads(
      [&]<class T>(CpuContext& ctx) { return all_results<T>(ctx, batch, 130); });
}

TEST(Norm, RowBitsDoNotDependOnTheBatch) {
  const Batch together({33, 20}, 0, {4, 5}), alone({20}, 12, {5});
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    Problem<T> x(together, 37), y(alone, 37);
    y.residual = subrange(x.residual, 33 * 37, 20 * 37);
    y.branch = subrange(x.branch, 33 * 37, 20 * 37);
    y.residual.resize(static_cast<std::size_t>(y.elements));
    y.branch.resize(static_cast<std::size_t>(y.elements));
    kernels::run(ctx, x.forward(NormKind::layer, 0.1f));
    kernels::run(ctx, y.forward(NormKind::layer, 0.1f));
    EXPECT_TRUE(same_bits(subrange(x.out, 33 * 37, 20 * 37), subrange(y.out, 0, 20 * 37)));
  });
}

TEST(Norm, WithoutACountAllRowsAreReal) {
  const Batch batch({33});
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    Problem<T> x(batch, 20);
    ResidualNorm<T> p = x.forward(NormKind::layer);
    p.rows = {.capacity = batch.capacity};
    expect_forward<T>(ctx, x, p);
  });
}

}  // namespace
}  // namespace nunchi::testing
