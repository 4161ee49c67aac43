// Which pairs make up batch n of epoch e: a function of the seed, the epoch and the data, so that a
// run can be taken up anywhere and neither threads nor machines change it.
//
// An epoch is shuffled, its pairs are sorted by length within windows of the shuffled order, so
// that sentences of similar length meet, cut into batches by their tokens, and the batches
// shuffled.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "nunchi/data/pair_store.h"

namespace nunchi {

// What the sentences of a batch have in common: their length, or nothing. Batches are not padded,
// so both are as fast; one of all lengths is a fairer sample of the data.
enum class BatchBy : std::uint8_t { length, chance };

struct BatchOptions {
  // Target tokens of a batch at most, </s> included; a longer sentence is a batch of its own.
  std::int64_t batch_tokens = 4096;
  // Source tokens of a batch at most, </s> included: many short targets can have long sources. 0:
  // eight times batch_tokens.
  std::int64_t source_tokens = 0;
  std::uint64_t seed = 1;
  BatchBy by = BatchBy::length;
  // Pairs that are sorted together; an epoch that is shorter is sorted as a whole.
  std::int64_t window = std::int64_t{1} << 20;
};

// A part of the data. Weight 1: each pair comes once an epoch; 2: twice; 0.5: half of them, and the
// other half in the next epoch. Over many epochs all pairs of a part come equally often.
struct WeightedPairs {
  const PairStore* pairs = nullptr;
  double weight = 1;
};

// The batches of one epoch, by the numbers of their pairs.
class EpochBatches {
 public:
  std::int64_t size() const { return static_cast<std::int64_t>(order_.size()); }
  std::span<const std::uint32_t> batch(std::int64_t number) const;

 private:
  friend class BatchOrder;

  std::vector<std::uint32_t> pairs_;   // batch after batch, in the order in which they were cut
  std::vector<std::uint32_t> begins_;  // of the batches in pairs_, and its end
  std::vector<std::uint32_t> order_;   // the batches, shuffled
};

// Immutable; any number of threads may use it at once. The stores must outlive it. Pairs are
// numbered through all parts: those of the first part, then those of the second.
class BatchOrder {
 public:
  // Throws Error for options that make no sense, or more than 2^32 - 1 pairs in an epoch.
  BatchOrder(std::vector<WeightedPairs> parts, const BatchOptions& options);

  // Computed anew at each call: about 12 bytes a pair, and 16 for those of one window meanwhile.
  EpochBatches epoch(std::int64_t epoch) const;

  // Pairs that an epoch has.
  std::int64_t epoch_pairs() const;
  std::span<const std::int32_t> source(std::int64_t pair) const;
  std::span<const std::int32_t> target(std::int64_t pair) const;
  const BatchOptions& options() const { return options_; }
  // Of everything that the order depends on: a run that is resumed compares it.
  std::uint64_t fingerprint() const;

 private:
  struct Part {
    const PairStore* store;
    double weight;
    std::int64_t first;      // number of its first pair
    std::int64_t per_epoch;  // pairs that come in an epoch
  };

  // The store that has the pair, and its number there.
  std::pair<const PairStore*, std::int64_t> find(std::int64_t pair) const;
  std::vector<std::uint32_t> draw(std::int64_t epoch) const;
  void cut(std::span<std::uint32_t> window, std::int64_t before, EpochBatches& batches) const;

  std::vector<Part> parts_;
  BatchOptions options_;
};

}  // namespace nunchi
