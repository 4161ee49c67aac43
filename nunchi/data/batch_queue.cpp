#include "nunchi/data/batch_queue.h"

#include <algorithm>
#include <string>
#include <utility>

#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"

namespace nunchi {

HostBatch gather(const BatchOrder& order, std::span<const std::uint32_t> pairs) {
  HostBatch batch;
  std::vector<Tokens> tokens;
  std::vector<Features> features;
  Tokens buffer;
  for (const std::uint32_t pair : pairs) {
    const auto [source, target] = order.read(pair, buffer);
    if (order.has_features()) {
      features.push_back(order.features(pair));
    } else {
      tokens.emplace_back(source.begin(), source.end());
    }
    batch.targets.emplace_back(target.begin(), target.end());
    batch.pairs.push_back(pair);
    batch.target_tokens += order.target_tokens(pair);
  }
  order.check_intact();
  if (order.has_features()) {
    batch.sources = std::move(features);
  } else {
    batch.sources = std::move(tokens);
  }
  return batch;
}

BatchQueue::BatchQueue(const BatchOrder& order, const BatchPosition& start, std::size_t depth)
    : order_(order),
      depth_(std::max<std::size_t>(depth, 1)),
      thread_([this, start](const std::stop_token& stop) { run(stop, start); }) {}

HostBatch BatchQueue::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !ready_.empty() || failure_; });
  if (ready_.empty()) std::rethrow_exception(failure_);
  HostBatch batch = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return batch;
}

bool BatchQueue::put(const std::stop_token& stop, HostBatch batch) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait(lock, stop, [&] { return ready_.size() < depth_; })) return false;
  ready_.push_back(std::move(batch));
  changed_.notify_all();
  return true;
}

void BatchQueue::run(const std::stop_token& stop, BatchPosition position) {
  try {
    if (order_.epoch_pairs() == 0) throw Error("the corpus has no pairs, so there are no batches.");
    while (!stop.stop_requested()) {
      const EpochBatches epoch = order_.epoch(position.epoch);
      if (position.number < 0 || position.number > epoch.size()) {
        throw Error("epoch " + grouped(position.epoch) + " has " + grouped(epoch.size()) +
                    " batches; it cannot be resumed at batch " + grouped(position.number) + ".");
      }
      for (; position.number < epoch.size(); ++position.number) {
        HostBatch batch = gather(order_, epoch.batch(position.number));
        batch.epoch = position.epoch;
        batch.number = position.number;
        batch.epoch_batches = epoch.size();
        if (!put(stop, std::move(batch))) return;
      }
      position = {position.epoch + 1, 0};
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    changed_.notify_all();
  }
}

}  // namespace nunchi
