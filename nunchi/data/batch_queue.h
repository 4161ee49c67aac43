// The next batches, gathered by a thread of their own while a step runs.
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
  std::int64_t number = 0;          // in the epoch, from 0
  std::int64_t epoch_batches = 0;   // that the epoch has
  SourceExamples sources;           // tokens that end with </s>, empty for a text; or features
  std::vector<Tokens> targets;      // without <s> and </s>; or windows, see BatchOrder
  std::vector<std::int64_t> pairs;  // their numbers in the BatchOrder
  std::int64_t target_tokens = 0;   // to be said, </s> included
};

// The tokens of these pairs; of no epoch.
HostBatch gather(const BatchOrder& order, std::span<const std::uint32_t> pairs);

// Where a run stands: the batch that comes next. One past an epoch's last is the next epoch's
// first.
struct BatchPlace {
  std::int64_t epoch = 0;
  std::int64_t number = 0;
};

// Gives the batches of a BatchOrder one after another, epoch after epoch without end, beginning at
// `start`; they do not depend on the time. At most `depth` wait. For one reader.
class BatchQueue {
 public:
  // `order` must outlive the queue.
  explicit BatchQueue(const BatchOrder& order, const BatchPlace& start = {}, std::size_t depth = 4);
  ~BatchQueue() = default;
  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  // Waits for the batch if need be. What goes wrong in the thread is thrown here, after the batches
  // before it: an Error when the data have no pairs, or when no such place exists in the epoch.
  HostBatch next();

 private:
  void run(std::stop_token stop, BatchPlace place);
  // False when the queue was asked to stop.
  bool put(std::stop_token stop, HostBatch batch);

  const BatchOrder& order_;
  const std::size_t depth_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<HostBatch> waiting_;
  std::exception_ptr failure_;
  std::jthread thread_;  // last: it stops before the rest goes
};

}  // namespace nunchi
