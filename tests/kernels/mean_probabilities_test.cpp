#include "nunchi/kernels/mean_probabilities.h"

#include <limits>

#include "tests/reference/search.h"
#include "tests/reference/versions.h"

namespace nunchi::testing {
namespace {

template <class T>
std::vector<T> mean_of(CpuContext& ctx, const std::vector<std::vector<T>>& logits,
                       std::int64_t vocabulary) {
  std::vector<T> out = unwritten<T>(std::ssize(logits.front()));
  kernels::MeanProbabilities<T> p{.rows = std::ssize(out) / vocabulary,
                                  .vocabulary = vocabulary,
                                  .members = static_cast<int>(logits.size()),
                                  .out = out.data()};
  for (std::size_t m = 0; m < logits.size(); ++m) p.logits[m] = logits[m].data();
  kernels::run(ctx, p);
  return out;
}

template <class T>
std::vector<std::vector<T>> random_logits(int members, std::int64_t count, double scale = 8) {
  std::vector<std::vector<T>> logits;
  for (int m = 0; m < members; ++m) {
    logits.push_back(random_values<T>(count, 40 + static_cast<std::uint64_t>(m), scale));
  }
  return logits;
}

TEST(MeanProbabilities, AreTheLogarithmOfTheMean) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const std::int64_t vocabulary : {1, 3, 16, 37, 1025}) {
      for (const int members : {1, 2, 3, 16}) {
        constexpr std::int64_t kRows = 3;
        const auto logits = random_logits<T>(members, kRows * vocabulary);
        const std::vector<T> out = mean_of(ctx, logits, vocabulary);
        for (std::int64_t r = 0; r < kRows; ++r) {
          std::vector<double> sums;
          for (const auto& each : logits) {
            sums.push_back(reference::log_sum(row_of(each, r, vocabulary)));
          }
          for (std::int64_t i = r * vocabulary; i < (r + 1) * vocabulary; ++i) {
            double mean = 0;
            for (std::size_t m = 0; m < logits.size(); ++m) {
              mean +=
                  std::exp(static_cast<double>(logits[m][static_cast<std::size_t>(i)]) - sums[m]);
            }
            const double expected = std::log(mean / members);
            ASSERT_NEAR(out[static_cast<std::size_t>(i)], expected,
                        kTolerance<T> * (1 + std::fabs(expected)))
                << vocabulary << " tokens, " << members << " members";
          }
        }
      }
    }
  });
}

// Their probabilities, e^-200 and less, are 0 in f32.
TEST(MeanProbabilities, KeepTheOrderOfVeryUnlikelyTokens) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    const std::vector<T> logits{T(0), T(-200), T(-300), T(-250)};
    const std::vector<T> out = mean_of<T>(ctx, {logits, logits}, 4);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(out[i], logits[i], 1e-3);
  });
}

TEST(MeanProbabilities, ATokenThatNoMemberAllowsStaysImpossible) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    constexpr T kNever = -std::numeric_limits<T>::infinity();
    std::vector<T> a(40, T(1)), b(40, T(2));
    a[3] = b[3] = kNever;
    a[5] = kNever;
    const std::vector<T> out = mean_of<T>(ctx, {a, b}, 40);
    EXPECT_EQ(out[3], kNever);
    EXPECT_NEAR(out[5], std::log(0.5 / 39), 1e-5);
    EXPECT_NEAR(out[6], std::log(0.5 / 38 + 0.5 / 39), 1e-5);
  });
}

TEST(MeanProbabilities, ANanMakesItsRowNan) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    auto logits = random_logits<T>(2, 2 * 37);
    logits[1][40] = std::numeric_limits<T>::quiet_NaN();
    const std::vector<T> out = mean_of(ctx, logits, 37);
    for (std::size_t i = 0; i < 37; ++i) EXPECT_FALSE(std::isnan(out[i]));
    for (std::size_t i = 37; i < 74; ++i) EXPECT_TRUE(std::isnan(out[i])) << i;
  });
}

TEST(MeanProbabilities, ARowDoesNotDependOnOtherRows) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    const auto logits = random_logits<T>(3, 5 * 65);
    const std::vector<T> together = mean_of(ctx, logits, 65);
    for (std::int64_t r = 0; r < 5; ++r) {
      std::vector<std::vector<T>> one;
      for (const auto& each : logits) one.push_back(subrange(each, r * 65, 65));
      EXPECT_TRUE(same_bits(mean_of(ctx, one, 65), subrange(together, r * 65, 65)));
    }
  });
}

}  // namespace
}  // namespace nunchi::testing
