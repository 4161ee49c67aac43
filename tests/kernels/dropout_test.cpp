// Philox, and the dropout draws of kernels: an identity activation of ones, whose output is the
// dropout factors.
#include "nunchi/kernels/dropout.h"

#include "nunchi/kernels/activation.h"
#include "tests/reference/dropout.h"
#include "tests/reference/versions.h"

namespace nunchi::testing {
namespace {

using kernels::Dropout;

// The known answers of Random123, the library by the authors of Philox.
TEST(Philox, MatchesRandom123sKnownAnswers) {
  using philox::Words;
  EXPECT_EQ(philox::bits({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox::bits({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox::bits({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, NeighbouringSeedsAndStepsHaveDifferentKeys) {
  const philox::Key key = philox::key_of({.seed = 5, .step = 9});
  EXPECT_NE(key, philox::key_of({.seed = 6, .step = 9}));
  EXPECT_NE(key, philox::key_of({.seed = 5, .step = 10}));
  EXPECT_NE(key, philox::key_of({.seed = 9, .step = 5}));
}

TEST(Dropout, ScalesByTheRoundedProbability) {
  EXPECT_FALSE(Dropout{}.active());
  EXPECT_EQ(Dropout{.probability = 0.5f}.threshold(), 32768u);
  EXPECT_EQ(Dropout{.probability = 0.5f}.scale(), 2.0);
  EXPECT_EQ(Dropout{.probability = 0.1f}.threshold(), 6554u);
  EXPECT_EQ(Dropout{.probability = 0.1f}.scale(), 65536.0 / (65536 - 6554));
}

const RandomKey kKey{.seed = 42, .step = 1000};

// The dropout factors of all elements, [count, width].
template <class T>
std::vector<T> factors(CpuContext& ctx, const Batch& batch, std::int64_t width,
                       const Dropout& dropout) {
  const std::vector<T> ones(static_cast<std::size_t>(batch.capacity * width), T(1));
  std::vector<T> out = unwritten<T>(batch.capacity * width);
  kernels::run(ctx, kernels::Activation<T>{.rows = batch.rows(),
                                           .width = width,
                                           .dropout = dropout,
                                           .x = ones.data(),
                                           .out = out.data()});
  return subrange(out, 0, batch.count * width);
}

TEST(Dropout, EveryDrawMatchesTheReference) {
  const Batch batch(kLengths, 32, {7, 100000, 3, 2000000000, 0});
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    for (const std::int64_t width : {1, 3, 7, 8, 9, 20, 37, 64, 127, 128, 130, 1100}) {
      for (const float probability : {0.1f, 0.5f, 1.0f}) {
        const Dropout dropout{.probability = probability, .operation_id = 0xABCD1234, .key = &kKey};
        const std::vector<T> actual = factors<T>(ctx, batch, width, dropout);
        for (std::int64_t r = 0; r < batch.count; ++r) {
          for (std::int64_t c = 0; c < width; ++c) {
            ASSERT_EQ(actual[r * width + c],
                      static_cast<T>(reference::dropout_factor(dropout, batch.rows(), r, c)))
                << "row " << r << ", column " << c << " of " << width;
          }
        }
      }
    }
  });
}

TEST(Dropout, ThreadsAndInstructionSetDoNotChangeDraws) {
  const Batch batch(kLengths);
  const Dropout dropout{.probability = 0.3f, .operation_id = 4, .key = &kKey};
  CpuContext first({.threads = 1, .isa = Isa::portable});
  const std::vector<float> expected = factors<float>(first, batch, 300, dropout);
  for (const Isa isa : all_isas()) {
    for (const int threads : {1, 2, 4}) {
      CpuContext ctx({.threads = threads, .isa = isa});
      EXPECT_TRUE(same_bits(factors<float>(ctx, batch, 300, dropout), expected));
    }
  }
}

TEST(Dropout, DrawsDoNotDependOnTheOrderOfSentences) {
  const Batch batch({5, 33, 8}, 0, {10, 11, 12}), reordered_batch({33, 8, 5}, 40, {11, 12, 10});
  const Dropout dropout{.probability = 0.5f, .operation_id = 4, .key = &kKey};
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    const std::int64_t width = 37;
    const std::vector<T> expected = factors<T>(ctx, batch, width, dropout);
    const std::vector<T> reordered = factors<T>(ctx, reordered_batch, width, dropout);
    EXPECT_TRUE(
        same_bits(subrange(expected, 0, 5 * width), subrange(reordered, 41 * width, 5 * width)));
    EXPECT_TRUE(
        same_bits(subrange(expected, 5 * width, 41 * width), subrange(reordered, 0, 41 * width)));
  });
}

TEST(Dropout, EveryPartOfTheCounterChangesTheDraw) {
  const RandomKey other_seed{.seed = 43, .step = 1000}, other_step{.seed = 42, .step = 1001};
  const Batch batch({127}, 0, {1}), other_sentence({127}, 0, {2});
  const Dropout dropout{.probability = 0.5f, .operation_id = 4, .key = &kKey};
  CpuContext ctx({.threads = 1});
  const auto draws = [&](const Batch& rows, const Dropout& options) {
    return factors<float>(ctx, rows, 64, options);
  };
  const std::vector<float> base = draws(batch, dropout);
  const std::vector<std::vector<float>> others = {
      draws(batch, {.probability = 0.5f, .operation_id = 5, .key = &kKey}),
      draws(batch, {.probability = 0.5f, .operation_id = 4, .key = &other_seed}),
      draws(batch, {.probability = 0.5f, .operation_id = 4, .key = &other_step}),
      draws(other_sentence, dropout)};
  for (const std::vector<float>& other : others) {
    int equal = 0;
    for (std::size_t i = 0; i < base.size(); ++i) equal += base[i] == other[i] ? 1 : 0;
    // Unrelated draws agree in half of the 8,128 cases, within four standard deviations.
    EXPECT_NEAR(equal, 4064, 180);
  }
}

TEST(Dropout, KeepsTheExpectedFraction) {
  const Batch batch(std::vector<std::int32_t>(40, 100));
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    for (const float probability : {0.1f, 0.5f}) {
      const Dropout dropout{.probability = probability, .operation_id = 1, .key = &kKey};
      const std::vector<T> actual = factors<T>(ctx, batch, 256, dropout);
      double kept = 0, sum = 0;
      for (const T factor : actual) {
        kept += factor > T(0) ? 1 : 0;
        sum += static_cast<double>(factor);
      }
      const auto draws = static_cast<double>(actual.size());
      const double deviation = std::sqrt(probability * (1 - probability) / draws);
      EXPECT_NEAR(kept / draws, 1 - probability, 4 * deviation);
      EXPECT_NEAR(sum / draws, 1, 4 * deviation / (1 - probability));
    }
  });
}

TEST(Dropout, ProbabilityZeroKeepsEverythingWithoutAKey) {
  const Batch batch({33});
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    for (const T factor : factors<T>(ctx, batch, 37, {})) ASSERT_EQ(factor, T(1));
  });
}

}  // namespace
}  // namespace nunchi::testing
