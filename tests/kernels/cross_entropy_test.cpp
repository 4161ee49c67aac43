#include "nunchi/kernels/cross_entropy.h"

#include <algorithm>

#include "tests/reference/cross_entropy.h"
#include "tests/reference/versions.h"

namespace nunchi::testing {
namespace {

using kernels::CrossEntropy;

template <class T>
struct Problem {
  Problem(std::int64_t chunk, std::int64_t vocabulary, double spread)
      : logits(random_values<T>(chunk * vocabulary, 1, spread)), loss(unwritten<T>(chunk)) {
    for (std::int64_t r = 0; r < chunk; ++r) {
      targets.push_back(static_cast<std::int32_t>((r * 7 + vocabulary - 1) % vocabulary));
    }
    p = {.rows = {.capacity = chunk},
         .chunk_rows = chunk,
         .vocabulary = vocabulary,
         .smoothing = 0.1,
         .write_gradient = true,
         .targets = targets.data(),
         .logits = logits.data(),
         .loss = loss.data()};
  }

  std::vector<std::int32_t> targets;
  std::vector<T> logits, loss;
  CrossEntropy<T> p;
};

template <class T>
void expect_agreement(CpuContext& ctx, Problem<T>& x) {
  const reference::CrossEntropy expected = reference::cross_entropy(x.p);
  const std::vector<T> logits = x.logits;
  kernels::run(ctx, x.p);
  expect_close("loss", x.loss, expected.loss);
  if (x.p.write_gradient) {
    expect_close("gradient", x.logits, expected.gradient, 0.1 * kTolerance<T>);
  } else {
    EXPECT_TRUE(same_bits(x.logits, logits));
  }
}

TEST(CrossEntropy, MatchesTheReference) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const std::int64_t vocabulary : {1, 3, 20, 37, 64, 130, 1025, 5000}) {
      for (const double smoothing : {0.0, 0.1}) {
        for (const bool write_gradient : {false, true}) {
          Problem<T> x(33, vocabulary, 8);
          x.p.smoothing = smoothing;
          x.p.write_gradient = write_gradient;
          expect_agreement<T>(ctx, x);
        }
      }
    }
  });
}

TEST(CrossEntropy, LargeLogitsDoNotOverflow) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    Problem<T> x(31, 130, 1000);
    expect_agreement<T>(ctx, x);
    Problem<T> shifted(31, 130, 1);
    for (T& logit : shifted.logits) logit += T(2000);
    expect_agreement<T>(ctx, shifted);
  });
}

TEST(CrossEntropy, RowsPastTheCountHaveZeroLossAndGradient) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    const std::int32_t count = 40;
    // Chunks of a batch with 40 real rows: one full, one partial, two empty.
    for (const std::int64_t first : {0, 32, 40, 44}) {
      Problem<T> x(first == 44 ? 4 : 16, 37, 4);
      x.p.rows = {.capacity = 60, .count = &count};
      x.p.first_row = first;
      expect_agreement<T>(ctx, x);
      const std::int64_t real = std::clamp<std::int64_t>(count - first, 0, x.p.chunk_rows);
      expect_zero_from("loss", x.loss, real);
      expect_zero_from("gradient", x.logits, real * 37);
    }
  });
}

TEST(CrossEntropy, EveryGradientSumsToZero) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    Problem<T> x(31, 1025, 5);
    kernels::run(ctx, x.p);
    for (std::int64_t r = 0; r < 31; ++r) {
      double sum = 0;
      for (std::int64_t v = 0; v < 1025; ++v) sum += x.logits[r * 1025 + v];
      EXPECT_NEAR(sum, 0, kTolerance<T>);
    }
  });
}

// With logits 0 for the target, x for another token and very low ones for the rest, x's gradient is
// e^x / (1 + e^x). Small vocabularies use single elements, larger ones vectors.
TEST(CrossEntropy, SmallProbabilitiesKeepTheirRelativeAccuracy) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    const double lowest = sizeof(T) == 4 ? -87 : -708;
    const double tolerance = sizeof(T) == 4 ? 2e-7 : 1e-15;
    const std::int64_t rows = 4001;
    for (const std::int64_t vocabulary : {2, 64}) {
      Problem<T> x(rows, vocabulary, 0);
      std::fill(x.targets.begin(), x.targets.end(), 0);
      std::fill(x.logits.begin(), x.logits.end(), T(-2000));
      std::vector<double> expected;
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto logit = static_cast<T>(lowest * static_cast<double>(r) / rows);
        x.logits[r * vocabulary] = 0;
        x.logits[r * vocabulary + 1] = logit;
        expected.push_back(std::exp(double{logit}) / (1 + std::exp(double{logit})));
      }
      x.p.smoothing = 0;
      kernels::run(ctx, x.p);
      for (std::int64_t r = 0; r < rows; ++r) {
        ASSERT_NEAR(x.logits[r * vocabulary + 1] / expected[r], 1, tolerance)
            << "row " << r << " of " << vocabulary;
      }
    }
  });
}

TEST(CrossEntropy, ImpossibleTokensHaveProbabilityZero) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const T never : {T(-1e30), static_cast<T>(-INFINITY)}) {
      Problem<T> x(3, 37, 1);
      for (std::int64_t r = 0; r < 3; ++r) x.logits[r * 37 + (x.targets[r] + 5) % 37] = never;
      x.p.smoothing = 0;
      expect_agreement<T>(ctx, x);
      EXPECT_EQ(x.logits[(x.targets[0] + 5) % 37], T(0));
    }
  });
}

TEST(CrossEntropy, PropagatesNaN) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    Problem<T> x(2, 37, 1);
    x.logits[5] = static_cast<T>(NAN);
    kernels::run(ctx, x.p);
    EXPECT_TRUE(std::isnan(x.loss[0]));
    EXPECT_TRUE(std::isfinite(x.loss[1]));
  });
}

TEST(CrossEntropy, NumberOfThreadsDoesNotChangeBits) {
  expect_same_bits_for_any_threads([]<class T>(CpuContext& ctx) {
    Problem<T> x(127, 1100, 5);
    kernels::run(ctx, x.p);
    std::vector<T> results = x.loss;
    results.insert(results.end(), x.logits.begin(), x.logits.end());
    return results;
  });
}

}  // namespace
}  // namespace nunchi::testing
