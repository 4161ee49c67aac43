#include "nunchi/inference/length_batches.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support.h"

namespace nunchi::testing {
namespace {

using Batches = std::vector<std::vector<std::size_t>>;

Batches batches_of(const std::vector<std::int64_t>& lengths, const BatchLimits& limits = {}) {
  return length_batches(lengths, limits);
}

TEST(LengthBatches, NoTextsGiveNoBatch) {
  EXPECT_EQ(batches_of({}), Batches());
  EXPECT_EQ(batches_of({0, 0, 0}), Batches());
}

TEST(LengthBatches, LongestFirstAndStable) {
  EXPECT_EQ(batches_of({2, 5, 3, 5, 2}), (Batches{{1, 3, 2, 0, 4}}));
}

TEST(LengthBatches, EmptyTextsAreInNoBatch) {
  EXPECT_EQ(batches_of({0, 4, 0, 6}), (Batches{{3, 1}}));
}

TEST(LengthBatches, RespectsTheTokenLimitExactly) {
  EXPECT_EQ(batches_of({4, 4, 4, 4}, {.tokens = 8}), (Batches{{0, 1}, {2, 3}}));
  EXPECT_EQ(batches_of({4, 4, 4, 4}, {.tokens = 7}), (Batches{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(batches_of({4, 3, 2, 1}, {.tokens = 7}), (Batches{{0, 1}, {2, 3}}));
}

TEST(LengthBatches, RespectsTheTextLimit) {
  EXPECT_EQ(batches_of({1, 1, 1, 1, 1}, {.texts = 2}), (Batches{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(batches_of({5, 4, 1}, {.tokens = 6, .texts = 2}), (Batches{{0}, {1, 2}}));
}

// Such a text is still translated.
TEST(LengthBatches, ATextBeyondTheLimitIsAloneInItsBatch) {
  EXPECT_EQ(batches_of({3, 1000, 3}, {.tokens = 10}), (Batches{{1}, {0, 2}}));
  EXPECT_EQ(batches_of({1000}, {.tokens = 1}), (Batches{{0}}));
}

TEST(LengthBatches, EachTextIsInOneBatchWithinTheLimits) {
  std::vector<std::int64_t> lengths;
  for (const double u : random_values<double>(500, 7)) {
    lengths.push_back(static_cast<std::int64_t>((u + 1) * 20));
  }
  const BatchLimits limits{.tokens = 100, .texts = 9};
  const Batches batches = length_batches(lengths, limits);
  std::vector<std::size_t> seen;
  std::int64_t previous = lengths[batches.front().front()];
  for (const std::vector<std::size_t>& batch : batches) {
    std::int64_t tokens = 0;
    for (const std::size_t i : batch) {
      EXPECT_LE(lengths[i], previous);
      previous = lengths[i];
      tokens += lengths[i];
    }
    EXPECT_LE(tokens, limits.tokens);
    EXPECT_LE(static_cast<std::int64_t>(batch.size()), limits.texts);
    seen.insert(seen.end(), batch.begin(), batch.end());
  }
  std::vector<std::size_t> expected;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] > 0) expected.push_back(i);
  }
  ASSERT_LT(expected.size(), lengths.size()) << "some are empty";
  std::ranges::sort(seen);
  EXPECT_EQ(seen, expected);
}

}  // namespace
}  // namespace nunchi::testing
