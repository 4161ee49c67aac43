// Which pairs make up batch n of epoch e: a function of the seed, the epoch and the data. A run can
// be resumed at any batch, and neither threads nor machines change the order.
//
// Examples are pairs, lines, or windows of a text; all are called pairs here. A window of n tokens
// to predict has n + 1 tokens. Each pass over a text cuts it at different positions, so that a
// small text is not always cut in the same way.
//
// To make the batches of an epoch, its pairs are shuffled, sorted by length within groups of
// `sort_window` pairs (so that sentences of similar length share a batch), and cut into batches by
// their token counts; then the batches are shuffled.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "nunchi/data/feature_batch.h"
#include "nunchi/data/pair_store.h"

namespace nunchi {

// How sentences are grouped into batches: by similar length, or at random. Batches are not padded,
// so both are equally fast; a random batch is a fairer sample of the data.
enum class BatchBy : std::uint8_t { length, random };

struct BatchOptions {
  // Upper bound for the target tokens of a batch, </s> included; a longer sentence is alone in its
  // batch.
  std::int64_t batch_tokens = 4096;
  // Upper bound for the source tokens of a batch, </s> included, or for its rows of features: many
  // short targets can have long sources. 0: eight times batch_tokens.
  std::int64_t source_tokens = 0;
  std::uint64_t seed = 1;
  BatchBy by = BatchBy::length;
  // Tokens to predict in each window of a text. 0: examples are the pairs or lines of the store;
  // stores with sources need 0.
  std::int64_t text_window = 0;
  // Pairs that are sorted together; a shorter epoch is sorted as a whole.
  std::int64_t sort_window = std::int64_t{1} << 20;
};

// A part of the data. With weight 1 each pair occurs once in an epoch, with 2 twice; with 0.5 one
// half of the pairs occurs in an epoch and the other half in the next. Over many epochs all pairs
// of a part occur equally often.
struct WeightedPairs {
  const PairStore* pairs = nullptr;
  double weight = 1;
};

// The batches of one epoch; a batch is a list of pair numbers.
class EpochBatches {
 public:
  std::int64_t size() const { return static_cast<std::int64_t>(order_.size()); }
  std::span<const std::uint32_t> batch(std::int64_t number) const;

 private:
  friend class BatchOrder;

  std::vector<std::uint32_t> pairs_;   // the pairs of all batches, before the batches are shuffled
  std::vector<std::uint32_t> begins_;  // index in pairs_ of each batch's first pair, then the end
  std::vector<std::uint32_t> order_;   // indices of the batches, shuffled
};

// Immutable; any number of threads may use it at the same time. The stores must outlive it. Pairs
// are numbered through all parts: those of the first part, then those of the second.
class BatchOrder {
 public:
  // Throws Error for options that make no sense, for parts with different kinds of sources, or for
  // more than 2^32 - 1 pairs in an epoch.
  BatchOrder(std::vector<WeightedPairs> parts, const BatchOptions& options);

  // Computed on each call. The result takes about 12 bytes per pair; the computation takes another
  // 16 bytes per pair of one sort window.
  EpochBatches epoch(std::int64_t epoch) const;

  // Number of pairs in an epoch.
  std::int64_t epoch_pairs() const;
  // Reads the pair into `buffer`, which the result refers to. A window of a text has no source, and
  // one token more than there are to predict. Throws Error when the file of the pairs has become
  // shorter or cannot be read.
  PairTokens read(std::int64_t pair, Tokens& buffer) const;
  // The pair's source, if it consists of features; throws like read().
  Features features(std::int64_t pair) const;
  // Throws Error when a file of the pairs was overwritten and is damaged. To be called between
  // reading pairs and using them.
  void check_intact() const;
  // Whether sources consist of features. All parts agree.
  bool has_features() const { return has_features_; }
  // Tokens or rows of features.
  std::int64_t source_rows(std::int64_t pair) const;
  // Number of tokens to predict: the target and </s>, or a window without its first token.
  std::int64_t target_tokens(std::int64_t pair) const;
  const BatchOptions& options() const { return options_; }
  // A hash of everything that the order depends on; a resumed run compares it.
  std::uint64_t fingerprint() const;

 private:
  struct Part {
    const PairStore* store;
    double weight;
    std::int64_t first;      // the number of its first pair among all parts
    std::int64_t pairs;      // pairs in one pass over the part
    std::int64_t per_epoch;  // pairs of the part in one epoch
  };
  // The `tokens` tokens from `begin` on: the inputs and one more.
  struct Window {
    std::int64_t begin, tokens;
  };

  std::int64_t pairs_of(const PairStore& store) const;
  // The number of different cuts of a part into windows; passes cycle through them. The windows of
  // each cut have their own numbers.
  std::int64_t cut_count() const;
  // The part that contains the pair, and the pair's number there.
  std::pair<const Part*, std::int64_t> find(std::int64_t pair) const;
  Window window(const Part& part, std::int64_t number) const;
  std::vector<std::uint32_t> draw(std::int64_t epoch) const;
  void cut(std::span<std::uint32_t> window, std::int64_t first, EpochBatches& batches) const;

  std::vector<Part> parts_;
  BatchOptions options_;
  bool has_features_ = false;
};

}  // namespace nunchi
