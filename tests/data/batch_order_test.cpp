#include "nunchi/data/batch_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "nunchi/data/content_hash.h"
#include "tests/data/stores.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace nunchi {
namespace {

using testing::random_store;
using testing::TemporaryFolder;
using Batches = std::vector<std::vector<std::uint32_t>>;

Batches batches_of(const BatchOrder& order, std::int64_t epoch) {
  const EpochBatches batches = order.epoch(epoch);
  Batches all;
  for (std::int64_t i = 0; i < batches.size(); ++i) {
    const auto batch = batches.batch(i);
    all.emplace_back(batch.begin(), batch.end());
  }
  return all;
}

// How often each pair occurs.
std::map<std::uint32_t, int> counts_of(const Batches& batches) {
  std::map<std::uint32_t, int> counts;
  for (const auto& batch : batches) {
    for (const std::uint32_t pair : batch) ++counts[pair];
  }
  return counts;
}

std::string hash_of(const Batches& batches) {
  ContentHash hash;
  for (const auto& batch : batches) {
    hash.update(batch.size());
    for (const std::uint32_t pair : batch) hash.update(pair);
  }
  return hash.digest().hex();
}

std::int64_t target_tokens(const BatchOrder& order, const std::vector<std::uint32_t>& batch) {
  std::int64_t sum = 0;
  for (const auto pair : batch) sum += order.target_tokens(pair);
  return sum;
}

std::int64_t source_tokens(const BatchOrder& order, const std::vector<std::uint32_t>& batch) {
  std::int64_t sum = 0;
  for (const auto pair : batch) sum += order.source_rows(pair);
  return sum;
}

class BatchOrders : public ::testing::Test {
 protected:
  TemporaryFolder folder;
  PairStore store = random_store(folder / "first", 2'000);
  PairStore other = random_store(folder / "second", 300, 2);
};

TEST_F(BatchOrders, EveryPairOccursOncePerEpoch) {
  const BatchOrder order({{&store, 1}, {&other, 1}}, {.batch_tokens = 200});
  EXPECT_EQ(order.epoch_pairs(), 2'300);
  for (const std::int64_t epoch : {0, 1, 7}) {
    const auto counts = counts_of(batches_of(order, epoch));
    ASSERT_EQ(counts.size(), 2'300u);
    for (const auto& [pair, count] : counts) {
      EXPECT_LT(pair, 2'300u);
      EXPECT_EQ(count, 1);
    }
  }
}

TEST_F(BatchOrders, PairsAreNumberedThroughAllParts) {
  const BatchOrder order({{&store, 1}, {&other, 1}}, {});
  for (const std::int64_t pair : {0, 1'999, 2'000, 2'299}) {
    const PairStore& part = pair < 2'000 ? store : other;
    const std::int64_t number = pair < 2'000 ? pair : pair - 2'000;
    Tokens buffer;
    const PairTokens read = order.read(pair, buffer);
    EXPECT_TRUE(std::ranges::equal(read.source, part.source(number)));
    EXPECT_TRUE(std::ranges::equal(read.target, part.target(number)));
    EXPECT_EQ(order.target_tokens(pair), std::ssize(read.target) + 1);
    EXPECT_EQ(order.source_rows(pair), std::ssize(read.source));
  }
}

TEST_F(BatchOrders, BatchesAreFilledUpToTheTokenLimit) {
  const BatchOrder order({{&store, 1}}, {.batch_tokens = 300});
  std::int64_t total = 0, full = 0;
  const Batches batches = batches_of(order, 0);
  for (const auto& batch : batches) {
    ASSERT_FALSE(batch.empty());
    const std::int64_t tokens = target_tokens(order, batch);
    EXPECT_LE(tokens, 300);
    total += tokens;
    full += tokens > 300 - 31;
  }
  // No batch except the last has space for one more sentence.
  EXPECT_GE(full, static_cast<std::int64_t>(batches.size()) - 1);
  std::vector<std::uint32_t> all_pairs(2'000);
  std::iota(all_pairs.begin(), all_pairs.end(), 0u);
  EXPECT_EQ(total, target_tokens(order, all_pairs));
}

TEST_F(BatchOrders, ASentenceLongerThanABatchIsAloneInItsBatch) {
  const BatchOrder order({{&store, 1}}, {.batch_tokens = 10});
  bool longer = false;
  for (const auto& batch : batches_of(order, 0)) {
    if (target_tokens(order, batch) > 10) {
      EXPECT_EQ(batch.size(), 1u);
      longer = true;
    }
  }
  EXPECT_TRUE(longer);
  EXPECT_EQ(batches_of(BatchOrder({{&store, 1}}, {.batch_tokens = 1}), 0).size(), 2'000u);
}

TEST_F(BatchOrders, BatchesAlsoLimitSourceTokens) {
  const BatchOrder order({{&store, 1}}, {.batch_tokens = 1'000, .source_tokens = 100});
  for (const auto& batch : batches_of(order, 0)) EXPECT_LE(source_tokens(order, batch), 100);
  EXPECT_EQ(BatchOrder({{&store, 1}}, {.batch_tokens = 1'000}).options().source_tokens, 8'000);
}

TEST_F(BatchOrders, SentencesOfABatchAreOfSimilarLength) {
  const BatchOrder order({{&store, 1}}, {.batch_tokens = 300});
  for (const auto& batch : batches_of(order, 0)) {
    std::int64_t shortest = 1'000, longest = 0;
    for (const auto pair : batch) {
      shortest = std::min(shortest, order.target_tokens(pair));
      longest = std::max(longest, order.target_tokens(pair));
    }
    EXPECT_LE(longest, shortest + 2);
  }
}

TEST_F(BatchOrders, BatchesAreNotSortedByLength) {
  const BatchOrder order({{&store, 1}}, {.batch_tokens = 300});
  std::vector<std::int64_t> lengths;
  for (const auto& batch : batches_of(order, 0)) lengths.push_back(order.target_tokens(batch[0]));
  int falls = 0;
  for (std::size_t i = 1; i < lengths.size(); ++i) falls += lengths[i] < lengths[i - 1];
  EXPECT_GT(falls, static_cast<int>(lengths.size()) / 3);
  EXPECT_LT(falls, static_cast<int>(lengths.size()) * 2 / 3);
}

TEST_F(BatchOrders, EachSortWindowIsSortedSeparately) {
  const BatchOrder order({{&store, 1}}, {.batch_tokens = 300, .sort_window = 300});
  const Batches batches = batches_of(order, 0);
  EXPECT_EQ(counts_of(batches).size(), 2'000u);
  for (const auto& batch : batches) EXPECT_LE(target_tokens(order, batch), 300);
  EXPECT_NE(hash_of(batches),
            hash_of(batches_of(BatchOrder({{&store, 1}}, {.batch_tokens = 300}), 0)));
}

TEST_F(BatchOrders, EpochsAndSeedsDiffer) {
  const BatchOrder first({{&store, 1}}, {.batch_tokens = 300, .seed = 1});
  const BatchOrder second({{&store, 1}}, {.batch_tokens = 300, .seed = 2});
  std::vector<std::string> hashes{hash_of(batches_of(first, 0)), hash_of(batches_of(first, 1)),
                                  hash_of(batches_of(second, 0)), hash_of(batches_of(second, 1))};
  std::ranges::sort(hashes);
  EXPECT_EQ(std::unique(hashes.begin(), hashes.end()), hashes.end());
  // The batches also contain different groups of sentences, not only in a different order.
  const auto sorted = [](Batches batches) {
    for (auto& batch : batches) std::ranges::sort(batch);
    std::ranges::sort(batches);
    return batches;
  };
  EXPECT_NE(sorted(batches_of(first, 0)), sorted(batches_of(first, 1)));
}

// Golden values: a change here breaks resuming of all earlier runs.
TEST_F(BatchOrders, AreTheSameInEveryBuild) {
  const BatchOrder order({{&store, 1}, {&other, 0.5}},
                         {.batch_tokens = 300, .seed = 42, .sort_window = 900});
  EXPECT_EQ(hash_of(batches_of(order, 0)), "c160e271d25459616493b501a9a68ecc");
  EXPECT_EQ(hash_of(batches_of(order, 3)), "f1cc29bd02fcde06fc862ea8dbef2c4f");
  EXPECT_EQ(order.fingerprint(), 8'079'744'511'837'175'390u);
}

TEST_F(BatchOrders, AreTheSameOnAnyThread) {
  const BatchOrder order({{&store, 1}}, {.batch_tokens = 300});
  const std::string expected = hash_of(batches_of(order, 2));
  std::vector<std::future<std::string>> hashes;
  for (int i = 0; i < 4; ++i) {
    hashes.push_back(std::async(std::launch::async, [&] { return hash_of(batches_of(order, 2)); }));
  }
  for (auto& hash : hashes) EXPECT_EQ(hash.get(), expected);
}

TEST_F(BatchOrders, BatchesByChanceMixLengths) {
  const BatchOrder sorted({{&store, 1}}, {.batch_tokens = 300});
  const BatchOrder mixed({{&store, 1}}, {.batch_tokens = 300, .by = BatchBy::random});
  for (const auto& [pair, count] : counts_of(batches_of(mixed, 1))) EXPECT_EQ(count, 1);
  const auto spread = [&](const BatchOrder& order) {
    std::int64_t widest = 0;
    for (const auto& batch : batches_of(order, 0)) {
      std::int64_t shortest = 1 << 20, longest = 0;
      for (const auto pair : batch) {
        const std::int64_t length = order.target_tokens(pair);
        shortest = std::min(shortest, length);
        longest = std::max(longest, length);
      }
      widest = std::max(widest, longest - shortest);
    }
    return widest;
  };
  EXPECT_GT(spread(mixed), 4 * std::max<std::int64_t>(1, spread(sorted)));
  EXPECT_NE(sorted.fingerprint(), mixed.fingerprint());
}

TEST_F(BatchOrders, AnIntegerWeightRepeatsThePairs) {
  const BatchOrder order({{&store, 1}, {&other, 2}}, {.batch_tokens = 300});
  for (const auto& [pair, count] : counts_of(batches_of(order, 1))) {
    EXPECT_EQ(count, pair < 2'000 ? 1 : 2);
  }
}

TEST_F(BatchOrders, WithWeightOneHalfTwoEpochsCoverAllPairs) {
  const BatchOrder order({{&store, 1}, {&other, 0.5}}, {.batch_tokens = 300});
  const auto drawn = [&](std::int64_t epoch) {
    auto counts = counts_of(batches_of(order, epoch));
    std::erase_if(counts, [](const auto& entry) { return entry.first < 2'000; });
    return counts;
  };
  for (const std::int64_t epoch : {0, 2}) {
    auto two_epochs = drawn(epoch);
    EXPECT_EQ(two_epochs.size(), 150u);
    auto next = drawn(epoch + 1);
    EXPECT_EQ(next.size(), 150u);
    two_epochs.merge(next);
    EXPECT_EQ(two_epochs.size(), 300u);
  }
  EXPECT_NE(drawn(0), drawn(2));
}

TEST_F(BatchOrders, OverManyEpochsEveryPairOccursEquallyOften) {
  const BatchOrder order({{&other, 0.7}, {&store, 1.3}}, {.batch_tokens = 300});
  std::map<std::uint32_t, int> counts;
  for (std::int64_t epoch = 0; epoch < 10; ++epoch) {
    for (const auto& [pair, count] : counts_of(batches_of(order, epoch))) counts[pair] += count;
  }
  for (const auto& [pair, count] : counts) EXPECT_EQ(count, pair < 300 ? 7 : 13) << pair;
}

TEST_F(BatchOrders, WithoutPairsAreEmpty) {
  const PairStore no_pairs = random_store(folder / "nothing", 0);
  for (const BatchOrder& order : {BatchOrder({}, {}), BatchOrder({{&no_pairs, 1}}, {})}) {
    EXPECT_EQ(order.epoch_pairs(), 0);
    EXPECT_EQ(order.epoch(0).size(), 0);
  }
  const BatchOrder mixed({{&no_pairs, 2}, {&other, 1}, {&no_pairs, 1}}, {});
  EXPECT_EQ(counts_of(batches_of(mixed, 0)).size(), 300u);
  Tokens buffer;
  EXPECT_TRUE(std::ranges::equal(mixed.read(0, buffer).target, other.target(0)));
}

TEST_F(BatchOrders, RefuseInvalidOptions) {
  EXPECT_THROW(BatchOrder({{&store, 1}}, {.batch_tokens = 0}), UsageError);
  EXPECT_THROW(BatchOrder({{&store, 1}}, {.batch_tokens = std::int64_t{1} << 60}), UsageError);
  EXPECT_THROW(BatchOrder({{&store, 1}}, {.source_tokens = -1}), UsageError);
  EXPECT_THROW(BatchOrder({{&store, 1}}, {.sort_window = 0}), UsageError);
  EXPECT_THROW(BatchOrder({{&store, 0}}, {}), UsageError);
  EXPECT_THROW(BatchOrder({{&store, -1}}, {}), UsageError);
  EXPECT_THROW(BatchOrder({{&store, std::numeric_limits<double>::quiet_NaN()}}, {}), UsageError);
  EXPECT_THROW(BatchOrder({{&store, std::numeric_limits<double>::infinity()}}, {}), UsageError);
  EXPECT_THROW(BatchOrder({{&store, 1e6}, {&store, 1e6}, {&store, 1e6}}, {}), Error);
  EXPECT_THROW(BatchOrder({{&store, 1}}, {}).epoch(-1), Error);
}

TEST_F(BatchOrders, TheFingerprintCoversOptionsWeightsAndData) {
  const BatchOptions options{.batch_tokens = 300};
  const std::uint64_t same = BatchOrder({{&store, 1}}, options).fingerprint();
  EXPECT_EQ(BatchOrder({{&store, 1}}, options).fingerprint(), same);
  BatchOptions changed = options;
  changed.seed = 9;
  EXPECT_NE(BatchOrder({{&store, 1}}, changed).fingerprint(), same);
  changed = options;
  changed.batch_tokens = 301;
  EXPECT_NE(BatchOrder({{&store, 1}}, changed).fingerprint(), same);
  EXPECT_NE(BatchOrder({{&store, 2}}, options).fingerprint(), same);
  EXPECT_NE(BatchOrder({{&other, 1}}, options).fingerprint(), same);
}

}  // namespace
}  // namespace nunchi
