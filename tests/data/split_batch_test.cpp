#include "nunchi/data/split_batch.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace nunchi::testing {
namespace {

// Pairs whose source has one token more than the target, which has `lengths` tokens.
HostBatch pairs_of(const std::vector<std::int32_t>& lengths) {
  HostBatch batch{.epoch = 2, .number = 3, .epoch_batches = 4};
  std::vector<Tokens> sources;
  for (const std::int32_t length : lengths) {
    batch.pairs.push_back(100 + std::ssize(batch.pairs));
    batch.targets.emplace_back(static_cast<std::size_t>(length), length);
    sources.emplace_back(static_cast<std::size_t>(length) + 1, length);
    batch.target_tokens += length + 1;
  }
  batch.sources = std::move(sources);
  return batch;
}

// The parts in order have all sentences of the batch.
void expect_same_sentences(const HostBatch& batch, const std::vector<HostBatch>& parts) {
  std::vector<std::int64_t> pairs;
  std::vector<Tokens> targets;
  std::size_t sources = 0;
  std::int64_t target_tokens = 0;
  for (const HostBatch& part : parts) {
    ASSERT_EQ(part.pairs.size(), part.targets.size());
    pairs.insert(pairs.end(), part.pairs.begin(), part.pairs.end());
    targets.insert(targets.end(), part.targets.begin(), part.targets.end());
    sources += example_count(part.sources);
    target_tokens += part.target_tokens;
    EXPECT_EQ(part.number, batch.number);
  }
  EXPECT_EQ(pairs, batch.pairs);
  EXPECT_EQ(targets, batch.targets);
  EXPECT_EQ(sources, example_count(batch.sources));
  EXPECT_EQ(target_tokens, batch.target_tokens);
}

TEST(SplitBatch, PartsHaveAllSentencesInOrderAndAtMostTheRowsAskedFor) {
  const HostBatch batch = pairs_of({5, 1, 9, 3, 30, 7, 4, 4, 4, 2});
  EXPECT_EQ(batch_rows(batch), 2 * 69 + 10);
  for (const std::int64_t max_rows : {1, 9, 20, 61, 74, 147, 148, 1000}) {
    const std::vector<HostBatch> parts = split_batch(batch, max_rows);
    expect_same_sentences(batch, parts);
    for (const HostBatch& part : parts) {
      EXPECT_TRUE(batch_rows(part) <= max_rows || part.targets.size() == 1) << max_rows;
    }
    EXPECT_EQ(parts.size() == 1, max_rows >= 148) << max_rows;
  }
}

TEST(SplitBatch, HalvesHaveAboutTheSameNumberOfRows) {
  for (const auto& [lengths, rows] :
       {std::pair{std::vector<std::int32_t>{4, 4, 4, 4}, std::pair{18, 18}},
        {{20, 1, 1}, {41, 6}},
        {{1, 1, 20}, {6, 41}},
        {{8, 8}, {17, 17}}}) {
    const HostBatch batch = pairs_of(lengths);
    const std::vector<HostBatch> halves = halves_of(batch);
    ASSERT_EQ(halves.size(), 2u);
    expect_same_sentences(batch, halves);
    EXPECT_EQ(batch_rows(halves[0]), rows.first);
    EXPECT_EQ(batch_rows(halves[1]), rows.second);
  }
}

// Texts have no sources; a window has one token more than there are to predict.
TEST(SplitBatch, WindowsAndFeaturesAreSplitToo) {
  HostBatch windows{.targets = {Tokens(9, 1), Tokens(9, 2), Tokens(9, 3)},
                    .pairs = {0, 1, 2},
                    .target_tokens = 24};
  expect_same_sentences(windows, split_batch(windows, 10));
  EXPECT_EQ(split_batch(windows, 10)[1].target_tokens, 8);
  HostBatch features{.sources = std::vector<Features>{{2, {1, 2, 3, 4}}, {2, {5, 6}}},
                     .targets = {Tokens(3, 1), Tokens(3, 2)},
                     .pairs = {7, 8},
                     .target_tokens = 8};
  EXPECT_EQ(batch_rows(features), 9);
  const std::vector<HostBatch> parts = split_batch(features, 5);
  expect_same_sentences(features, parts);
  EXPECT_EQ(std::get<std::vector<Features>>(parts[1].sources)[0].values,
            (std::vector<float>{5, 6}));
}

}  // namespace
}  // namespace nunchi::testing
