// The size of micro-batches that fits into memory (training.batch_tokens: auto).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "nunchi/data/batch_queue.h"
#include "nunchi/training/config/train_config.h"
#include "nunchi/training/objectives/objective.h"

namespace nunchi {

// The batch of the first epoch with most rows (see batch_rows).
HostBatch largest_batch(const BatchOrder& order);

struct BatchSearchParts {
  Model& model;  // allocated with gradients; its weights do not change
  const Objective& objective;
  const TrainingOptions& training;
  // The order of the data with this number of target tokens in a micro-batch.
  std::function<std::unique_ptr<BatchOrder>(std::int64_t batch_tokens)> order;
  const std::atomic<bool>* stop = nullptr;  // true: throw Interrupted
};

// The largest batch_tokens, up to 24,576, with which the largest micro-batch of an epoch fits into
// memory beside the state of training, less a tenth if larger ones do not fit: other epochs have
// other batches. Tries doubled sizes from 512 on, then two between the last that fits and the first
// that does not. Throws Error if not even 64 tokens fit.
std::int64_t find_batch_tokens(const BatchSearchParts& parts);

}  // namespace nunchi
