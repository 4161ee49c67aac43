// Which pairs make up batch n of epoch e: a function of the seed, the epoch and the data, so that a
// run can be taken up anywhere and neither threads nor machines change it.
//
// Examples are pairs, lines, or windows of a text: so many tokens in a row, and one more. The text
// is cut at other places in each pass over it, so that a small one is not always cut at the same.
//
// An epoch is shuffled, its pairs are sorted by length within windows of the shuffled order, so
// that sentences of similar length meet, cut into batches by their tokens, and the batches
// shuffled.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "nunchi/data/feature_batch.h"
#include "nunchi/data/pair_store.h"

namespace nunchi {

// What the sentences of a batch have in common: their length, or nothing. Batches are not padded,
// so both are as fast; one of all lengths is a fairer sample of the data.
enum class BatchBy : std::uint8_t { length, chance };

struct BatchOptions {
  // Target tokens of a batch at most, </s> included; a longer sentence is a batch of its own.
  std::int64_t batch_tokens = 4096;
  // Source tokens of a batch at most, </s> included, or rows of features: many short targets can
  // have long sources. 0: eight times batch_tokens.
  std::int64_t source_tokens = 0;
  std::uint64_t seed = 1;
  BatchBy by = BatchBy::length;
  // Texts are cut into windows of so many tokens to be said; 0: into the pairs of their store, as
  // all that has sources is.
  std::int64_t text_window = 0;
  // Pairs that are sorted together; an epoch that is shorter is sorted as a whole.
  std::int64_t window = std::int64_t{1} << 20;
};

// A part of the data; what is said of pairs goes for windows, too. Weight 1: each pair comes once
// an epoch; 2: twice; 0.5: half of them, and the other half in the next epoch. Over many epochs all
// pairs of a part come equally often.
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
  // Throws Error for options that make no sense, for parts with different kinds of sources, or for
  // more than 2^32 - 1 pairs in an epoch.
  BatchOrder(std::vector<WeightedPairs> parts, const BatchOptions& options);

  // Computed anew at each call: about 12 bytes a pair, and 16 for those of one window meanwhile.
  EpochBatches epoch(std::int64_t epoch) const;

  // Pairs that an epoch has.
  std::int64_t epoch_pairs() const;
  // The pair's source on the host: tokens, none for a window; or features.
  std::span<const std::int32_t> source(std::int64_t pair) const;
  Features features(std::int64_t pair) const;
  // Whether sources consist of features. All parts agree.
  bool has_features() const { return has_features_; }
  // Tokens or rows of features.
  std::int64_t source_rows(std::int64_t pair) const;
  // A window has one token more than are to be said of it.
  std::span<const std::int32_t> target(std::int64_t pair) const;
  // Tokens to be said: the target and </s>, or all but the first of a window.
  std::int64_t target_tokens(std::int64_t pair) const;
  const BatchOptions& options() const { return options_; }
  // Of everything that the order depends on: a run that is resumed compares it.
  std::uint64_t fingerprint() const;

 private:
  struct Part {
    const PairStore* store;
    double weight;
    std::int64_t first;      // number of its first pair
    std::int64_t pairs;      // of a pass over it
    std::int64_t per_epoch;  // pairs that come in an epoch
  };
  // Tokens from `begin` on: inputs, and one more.
  struct Window {
    std::int64_t begin, tokens;
  };

  std::int64_t pairs_of(const PairStore& store) const;
  // Ways to cut a part, which take turns; each has numbers of its own for its windows.
  std::int64_t turns() const;
  // The part that has the pair, and its number there.
  std::pair<const Part*, std::int64_t> find(std::int64_t pair) const;
  Window window(const Part& part, std::int64_t number) const;
  std::vector<std::uint32_t> draw(std::int64_t epoch) const;
  void cut(std::span<std::uint32_t> window, std::int64_t before, EpochBatches& batches) const;

  std::vector<Part> parts_;
  BatchOptions options_;
  bool has_features_ = false;
};

}  // namespace nunchi
