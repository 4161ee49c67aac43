#include "nunchi/training/batch_search.h"

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/base/interrupted.h"
#include "nunchi/base/process.h"
#include "nunchi/device/context.h"
#include "nunchi/training/learner.h"
#include "nunchi/training/moving_average.h"

namespace nunchi {
namespace {

constexpr std::int64_t kSmallest = 64, kFirst = 512;
constexpr std::int64_t kLargest = 24576;  // about the paper's batch

std::int64_t rows_of(const BatchOrder& order, std::span<const std::uint32_t> pairs) {
  std::int64_t rows = 0;
  for (const std::uint32_t pair : pairs)
    rows += order.source_rows(pair) + order.target_tokens(pair);
  return rows;
}

// Tries sizes with the memory that a run has: the state of training is allocated.
class Trials {
 public:
  explicit Trials(const BatchSearchParts& parts)
      : parts_(parts),
        learner_(parts.model, parts.objective, {.adam = parts.training.optimizer.adam},
                 single_process_) {
    const Tensor& gradients = parts.model.parameters().gradients();
    ContextBase& context = gradients.context();
    std::int64_t copies = parts.training.ema > 0 ? 1 : 0;
    // A tree sum keeps one copy of the gradients for each level of the tree.
    if (parts.training.gradient_sum == GradientSum::tree) {
      copies += std::bit_width(static_cast<std::uint64_t>(parts.training.accumulate - 1));
    }
    for (std::int64_t i = 0; i < copies; ++i) {
      state_.push_back(Tensor::empty(context, gradients.dtype(), gradients.shape()));
    }
    fixed_bytes_ = static_cast<double>(context.arena().in_use());
    if (context.device() == Device::cpu && available_memory_mib() > 0) {
      limit_bytes_ = fixed_bytes_ + available_memory_mib() * (1 << 20);
    }
  }

  bool fits(std::int64_t batch_tokens) {
    check_stop(parts_.stop);
    if (limit_bytes_ > 0 && predicted_bytes(batch_tokens) > limit_bytes_) return false;
    const std::unique_ptr<BatchOrder> order = parts_.order(batch_tokens);
    if (!learner_.fits(largest_batch(*order))) return false;
    largest_ = batch_tokens;
    return true;
  }

 private:
  // The system does not refuse memory that the machine does not have, so sizes that would need it
  // are not tried. Activations grow in proportion to the tokens.
  double predicted_bytes(std::int64_t batch_tokens) const {
    if (largest_ == 0) return 0;
    const Arena& arena = parts_.model.parameters().weights().context().arena();
    const double activations = static_cast<double>(arena.peak()) - fixed_bytes_;
    return fixed_bytes_ +
           activations * static_cast<double>(batch_tokens) / static_cast<double>(largest_);
  }

  const BatchSearchParts& parts_;
  SingleProcess single_process_;
  Learner learner_;
  std::vector<Tensor> state_;
  double fixed_bytes_ = 0, limit_bytes_ = 0;  // a limit of 0: the device refuses by itself
  std::int64_t largest_ = 0;                  // the largest size that fits so far
};

constexpr std::int64_t rounded(std::int64_t tokens) {
  return std::max(kSmallest, tokens / kSmallest * kSmallest);
}

}  // namespace

HostBatch largest_batch(const BatchOrder& order) {
  const EpochBatches batches = order.epoch(0);
  std::int64_t largest = 0, largest_rows = -1;
  for (std::int64_t i = 0; i < batches.size(); ++i) {
    const std::int64_t rows = rows_of(order, batches.batch(i));
    if (rows <= largest_rows) continue;
    largest = i;
    largest_rows = rows;
  }
  return gather(order, batches.batch(largest));
}

std::int64_t find_batch_tokens(const BatchSearchParts& parts) {
  Trials trials(parts);
  std::int64_t low = 0, high = kFirst;
  while (trials.fits(high)) {
    if (high == kLargest) return kLargest;
    low = high;
    high = std::min(2 * high, kLargest);
  }
  if (low == 0) {
    if (!trials.fits(kSmallest)) {
      throw Error(
          "training.batch_tokens is auto, but not even micro-batches of " +
          std::to_string(kSmallest) +
          " target tokens fit into memory. Lower data.max_length or the sizes of the model.");
    }
    low = kSmallest;
  }
  for (int i = 0; i < 2 && high - low > kSmallest; ++i) {
    const std::int64_t middle = rounded((low + high) / 2);
    (trials.fits(middle) ? low : high) = middle;
  }
  return rounded(low * 9 / 10);
}

}  // namespace nunchi
