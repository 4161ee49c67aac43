// A queue of batches that a background thread fills while the training step runs.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "nunchi/data/batch_order.h"
#include "nunchi/data/source.h"
#include "nunchi/text/tokens.h"

namespace nunchi {

struct HostBatch {
  std::int64_t epoch = 0;
  std::int64_t number = 0;          // index in the epoch, from 0
  std::int64_t epoch_batches = 0;   // batches in the epoch
  SourceExamples sources;           // tokens that end with </s> (empty for a text), or features
  std::vector<Tokens> targets;      // without <s> and </s>, or windows (see BatchOrder)
  std::vector<std::int64_t> pairs;  // pair numbers in the BatchOrder
  std::int64_t target_tokens = 0;   // tokens to predict, </s> included
};

// These pairs as a batch that belongs to no epoch. Throws Error when a file of the pairs has become
// shorter or was overwritten.
HostBatch gather(const BatchOrder& order, std::span<const std::uint32_t> pairs);

// The position of a training run: the next batch. A number equal to the epoch's batch count means
// the first batch of the next epoch.
struct BatchPosition {
  std::int64_t epoch = 0;
  std::int64_t number = 0;
};

// Returns the batches of a BatchOrder in order, epoch after epoch without end, from `start` on. The
// order does not depend on timing. At most `depth` batches are prepared in advance. Only one thread
// may call next().
class BatchQueue {
 public:
  // `order` must outlive the queue.
  explicit BatchQueue(const BatchOrder& order, const BatchPosition& start = {},
                      std::size_t depth = 4);
  ~BatchQueue() = default;
  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  // Waits for the batch if necessary. An exception of the background thread is rethrown here, after
  // all earlier batches: Error when the data have no pairs, when the epoch has no such batch, or
  // when a file of the pairs has become shorter or was overwritten.
  HostBatch next();

 private:
  void run(const std::stop_token& stop, BatchPosition position);
  // Returns false when the queue was asked to stop.
  bool put(const std::stop_token& stop, HostBatch batch);

  const BatchOrder& order_;
  const std::size_t depth_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<HostBatch> ready_;
  std::exception_ptr failure_;
  std::jthread thread_;  // the last member, so that it stops before the others are destroyed
};

}  // namespace nunchi
