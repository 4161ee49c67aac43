#include "nunchi/data/batch_queue.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/data/stores.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace nunchi {
namespace {

using testing::error_of;
using testing::random_store;
using testing::says;
using testing::TemporaryFolder;

class BatchQueues : public ::testing::Test {
 protected:
  TemporaryFolder folder;
  PairStore store = random_store(folder / "pairs", 500);
  BatchOrder order{{{&store, 1}}, {.batch_tokens = 200}};
};

TEST_F(BatchQueues, ReturnTheBatchesOfTheOrderEpochAfterEpoch) {
  BatchQueue queue(order);
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    const EpochBatches expected = order.epoch(epoch);
    for (std::int64_t number = 0; number < expected.size(); ++number) {
      const HostBatch batch = queue.next();
      ASSERT_EQ(batch.epoch, epoch);
      ASSERT_EQ(batch.number, number);
      ASSERT_EQ(batch.epoch_batches, expected.size());
      const auto pairs = expected.batch(number);
      ASSERT_EQ(batch.pairs, std::vector<std::int64_t>(pairs.begin(), pairs.end()));
      ASSERT_EQ(example_count(batch.sources), pairs.size());
      ASSERT_EQ(batch.targets.size(), pairs.size());
      std::int64_t tokens = 0;
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        const auto source = store.source(pairs[i]), target = store.target(pairs[i]);
        ASSERT_EQ(tokens_of(batch.sources)[i], Tokens(source.begin(), source.end()));
        ASSERT_EQ(batch.targets[i], Tokens(target.begin(), target.end()));
        tokens += static_cast<std::int64_t>(target.size()) + 1;
      }
      ASSERT_EQ(batch.target_tokens, tokens);
    }
  }
}

TEST_F(BatchQueues, ResumeInTheMiddleOfAnEpoch) {
  BatchQueue whole(order);
  const std::int64_t batches = order.epoch(0).size();
  std::vector<HostBatch> all;
  for (std::int64_t i = 0; i < 2 * batches; ++i) all.push_back(whole.next());
  for (const std::int64_t start : {std::int64_t{1}, batches / 2, batches - 1, batches + 3}) {
    const HostBatch& first = all[static_cast<std::size_t>(start)];
    BatchQueue resumed(order, {first.epoch, first.number});
    for (std::int64_t i = start; i < 2 * batches; ++i) {
      const HostBatch& expected = all[static_cast<std::size_t>(i)];
      const HostBatch batch = resumed.next();
      ASSERT_EQ(batch.epoch, expected.epoch);
      ASSERT_EQ(batch.number, expected.number);
      ASSERT_EQ(batch.pairs, expected.pairs);
    }
  }
}

TEST_F(BatchQueues, OnePastTheLastBatchIsTheFirstOfTheNextEpoch) {
  BatchQueue queue(order, {2, order.epoch(2).size()});
  const HostBatch batch = queue.next();
  EXPECT_EQ(batch.epoch, 3);
  EXPECT_EQ(batch.number, 0);
}

TEST_F(BatchQueues, BatchesDoNotDependOnTheDepth) {
  BatchQueue shallow(order, {}, 0), deep(order, {}, 50);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(shallow.next().pairs, deep.next().pairs);
}

TEST_F(BatchQueues, AQueueDestroyedAtAnyMomentLeavesTheOrderUsable) {
  const EpochBatches expected = order.epoch(0);
  const std::vector<std::int64_t> first(expected.batch(0).begin(), expected.batch(0).end());
  for (int i = 0; i < 20; ++i) {
    // Destroyed while its thread gathers, or while it waits for space in the queue.
    BatchQueue queue(order, {}, 2);
    if (i % 2 == 0) {
      EXPECT_EQ(queue.next().pairs, first);
    }
    if (i % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(BatchQueue(order).next().pairs, first);
}

TEST_F(BatchQueues, NextFailsAtAPositionThatDoesNotExist) {
  BatchQueue too_late(order, {0, 100'000});
  EXPECT_TRUE(says(error_of([&] { too_late.next(); }), "it cannot be resumed at batch 100,000"));
  BatchQueue negative(order, {0, -1});
  EXPECT_TRUE(says(error_of([&] { negative.next(); }), "it cannot be resumed at batch -1"));
  EXPECT_TRUE(says(error_of([&] { negative.next(); }), "it cannot be resumed at batch -1"));
  BatchQueue epoch(order, {-3, 0});
  EXPECT_TRUE(says(error_of([&] { epoch.next(); }), "epoch -3 does not exist"));
}

TEST_F(BatchQueues, NextFailsWithoutPairs) {
  const BatchOrder nothing({}, {});
  BatchQueue queue(nothing);
  EXPECT_TRUE(says(error_of([&] { queue.next(); }), "no pairs"));
}

}  // namespace
}  // namespace nunchi
