#include "nunchi/data/batch_order.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"
#include "nunchi/base/random.h"
#include "nunchi/data/content_hash.h"

namespace nunchi {
namespace {

constexpr std::int64_t kMostPairs = std::numeric_limits<std::uint32_t>::max();
constexpr double kMostWeight = 1e6;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 40;
constexpr std::int64_t kLongestWindow = std::int64_t{1} << 24;
// To be increased when the same data and options would give another order.
constexpr std::uint64_t kVersion = 1;

// The purpose of a shuffle; each has its own random numbers.
enum class Purpose : std::uint32_t { part = 1, epoch = 2, batches = 3, windows = 4 };

// Different cuts of a text into windows; after the last one the first is used again.
constexpr std::int64_t kCuts = 64;

// The constant ("order") keeps these draws apart from the dropout's, which has the same seed.
RandomKey random_key(std::uint64_t seed, std::int64_t pass) {
  return {seed ^ 0x6F72646572ull, static_cast<std::uint64_t>(pass)};
}

// A uniform number below `bound`: the upper half of 64 random bits times the bound.
std::uint32_t below(std::uint32_t bound, const philox::Words& random) {
  const std::uint64_t low = (std::uint64_t{random[0]} * bound) >> 32;
  return static_cast<std::uint32_t>((std::uint64_t{random[1]} * bound + low) >> 32);
}

// Fisher-Yates shuffle; `stream` separates shuffles of one purpose and key.
void shuffle(std::span<std::uint32_t> values, const RandomKey& key, Purpose purpose,
             std::uint32_t stream = 0) {
  const philox::Key words = philox::key_of(key);
  for (std::size_t left = values.size(); left > 1; --left) {
    const auto last = static_cast<std::uint32_t>(left - 1);
    const auto random = philox::bits({last, static_cast<std::uint32_t>(purpose), stream, 0}, words);
    std::swap(values[last], values[below(last + 1, random)]);
  }
}

// A pair in its window: sorted by its lengths, then by its index in the shuffled order.
struct Sortable {
  std::uint32_t target;
  std::uint32_t source;
  std::uint32_t index;
  std::uint32_t pair;

  friend auto operator<=>(const Sortable&, const Sortable&) = default;
};

// Where a text with `tokens` tokens to predict can be cut for the first time. After that it is cut
// every `window` tokens; the first and the last window are shorter. All cuts of a text have to give
// the same number of windows: of the possible first cuts, the larger group that does is allowed.
class FirstCut {
 public:
  FirstCut(std::int64_t tokens, std::int64_t window)
      : whole_((tokens + window - 1) / window),
        rest_(tokens - (whole_ - 1) * window),
        window_(window),
        early_(whole_ > 1 && rest_ - 1 > window - rest_ + 1) {}

  std::int64_t count() const { return whole_ < 1 ? 0 : early_ ? whole_ + 1 : whole_; }
  std::int64_t least() const { return early_ ? 1 : rest_; }
  std::int64_t range() const { return early_ ? rest_ - 1 : window_ - rest_ + 1; }

 private:
  std::int64_t whole_;  // windows when the first one is a whole window
  std::int64_t rest_;   // tokens of the last window then
  std::int64_t window_;
  bool early_;  // the first cut is so early that there is one window more
};

}  // namespace

std::span<const std::uint32_t> EpochBatches::batch(std::int64_t number) const {
  const std::size_t at = order_.at(static_cast<std::size_t>(number));
  return std::span(pairs_).subspan(begins_[at], begins_[at + 1] - begins_[at]);
}

BatchOrder::BatchOrder(std::vector<WeightedPairs> parts, const BatchOptions& options)
    : options_(options) {
  if (options.batch_tokens < 1 || options.batch_tokens > kMostTokens || options.source_tokens < 0 ||
      options.source_tokens > kMostTokens) {
    throw UsageError("a batch has from 1 to 2^40 tokens.");
  }
  if (options.text_window < 0 || options.text_window > kLongestWindow) {
    throw UsageError("a window of a text has from 1 to 2^24 tokens.");
  }
  if (options.window < 1) throw UsageError("a window of sentences has at least one sentence.");
  if (options_.source_tokens == 0) options_.source_tokens = 8 * options.batch_tokens;
  std::int64_t first = 0, all = 0;
  for (const WeightedPairs& part : parts) {
    if (!(part.weight > 0 && part.weight <= kMostWeight)) {
      throw UsageError("the weight of a part of the corpus is a number above 0 and up to 10^6.");
    }
    if (options.text_window > 0 && part.pairs->has_sources()) {
      throw Error("pairs of sentences cannot be cut into windows of a text.");
    }
    has_features_ = part.pairs->features() != nullptr;
    if (has_features_ != (parts.front().pairs->features() != nullptr) ||
        (has_features_ &&
         part.pairs->features()->width() != parts.front().pairs->features()->width())) {
      throw Error(
          "all parts of a corpus need the same kind of source: tokens, or features of one "
          "width.");
    }
    const std::int64_t pairs = pairs_of(*part.pairs), numbers = pairs * cuts();
    const double asked = part.weight * static_cast<double>(pairs);
    if (numbers > kMostPairs - first || asked > static_cast<double>(kMostPairs - all)) {
      throw Error("an epoch can have " + grouped(kMostPairs) +
                  " pairs at most; with these weights the parts of the corpus have more.");
    }
    const std::int64_t per_epoch = pairs == 0 ? 0 : std::max<std::int64_t>(1, std::llround(asked));
    parts_.push_back({part.pairs, part.weight, first, pairs, per_epoch});
    first += numbers;
    all += per_epoch;
  }
}

std::int64_t BatchOrder::epoch_pairs() const {
  return std::accumulate(parts_.begin(), parts_.end(), std::int64_t{0},
                         [](std::int64_t sum, const Part& part) { return sum + part.per_epoch; });
}

// A part is an infinite sequence: its pairs in one random order, then in another, and so on. An
// epoch takes the next per_epoch pairs.
std::vector<std::uint32_t> BatchOrder::draw(std::int64_t epoch) const {
  std::vector<std::uint32_t> drawn, pass;
  drawn.reserve(static_cast<std::size_t>(epoch_pairs()));
  for (std::size_t number = 0; number < parts_.size(); ++number) {
    const Part& part = parts_[number];
    const std::int64_t pairs = part.pairs;
    std::int64_t begin = epoch * part.per_epoch;
    const std::int64_t end = begin + part.per_epoch;
    while (begin < end) {
      const std::int64_t from = begin % pairs;
      const std::int64_t count = std::min(end - begin, pairs - from);
      pass.resize(static_cast<std::size_t>(pairs));
      const std::int64_t cut = begin / pairs % cuts();
      std::iota(pass.begin(), pass.end(), static_cast<std::uint32_t>(part.first + cut * pairs));
      // A whole pass needs no shuffle here: it is shuffled with the epoch.
      if (count < pairs) {
        shuffle(pass, random_key(options_.seed, begin / pairs), Purpose::part,
                static_cast<std::uint32_t>(number));
      }
      drawn.insert(drawn.end(), pass.begin() + from, pass.begin() + from + count);
      begin += count;
    }
  }
  shuffle(drawn, random_key(options_.seed, epoch), Purpose::epoch);
  return drawn;
}

// Sorts the window and adds its batches; `before` pairs precede it in the epoch.
void BatchOrder::cut(std::span<std::uint32_t> window, std::int64_t before,
                     EpochBatches& batches) const {
  std::vector<Sortable> sorted;
  sorted.reserve(window.size());
  for (const std::uint32_t pair : window) {
    sorted.push_back({static_cast<std::uint32_t>(target_tokens(pair)),
                      static_cast<std::uint32_t>(source_rows(pair)),
                      static_cast<std::uint32_t>(sorted.size()), pair});
  }
  if (options_.by == BatchBy::length) std::sort(sorted.begin(), sorted.end());
  std::int64_t targets = 0, sources = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    window[i] = sorted[i].pair;
    const std::int64_t target = sorted[i].target, source = sorted[i].source;
    if (i == 0 || targets + target > options_.batch_tokens ||
        sources + source > options_.source_tokens) {
      batches.begins_.push_back(static_cast<std::uint32_t>(before + static_cast<std::int64_t>(i)));
      targets = sources = 0;
    }
    targets += target;
    sources += source;
  }
}

EpochBatches BatchOrder::epoch(std::int64_t epoch) const {
  if (epoch < 0 || epoch > std::numeric_limits<std::int32_t>::max()) {
    throw Error("epoch " + std::to_string(epoch) + " does not exist.");
  }
  EpochBatches batches;
  batches.pairs_ = draw(epoch);
  const auto all = static_cast<std::int64_t>(batches.pairs_.size());
  // Windows differ by at most one pair: a short last window would group lengths less well.
  const std::int64_t windows = (all + options_.window - 1) / options_.window;
  for (std::int64_t i = 0; i < windows; ++i) {
    const std::int64_t begin = i * (all / windows) + std::min(i, all % windows);
    const std::int64_t size = all / windows + (i < all % windows ? 1 : 0);
    cut(std::span(batches.pairs_)
            .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size)),
        begin, batches);
  }
  batches.order_.resize(batches.begins_.size());
  batches.begins_.push_back(static_cast<std::uint32_t>(all));
  std::iota(batches.order_.begin(), batches.order_.end(), std::uint32_t{0});
  shuffle(batches.order_, random_key(options_.seed, epoch), Purpose::batches);
  return batches;
}

std::pair<const BatchOrder::Part*, std::int64_t> BatchOrder::find(std::int64_t pair) const {
  const auto after =
      std::upper_bound(parts_.begin(), parts_.end(), pair,
                       [](std::int64_t number, const Part& part) { return number < part.first; });
  const Part& part = *std::prev(after);
  return {&part, pair - part.first};
}

std::int64_t BatchOrder::cuts() const { return options_.text_window > 0 ? kCuts : 1; }

std::int64_t BatchOrder::pairs_of(const PairStore& store) const {
  if (options_.text_window == 0) return store.size();
  return FirstCut(std::ssize(store.tokens()) - 1, options_.text_window).count();
}

BatchOrder::Window BatchOrder::window(const Part& part, std::int64_t number) const {
  const std::int64_t tokens = std::ssize(part.store->tokens()) - 1;
  const FirstCut possible(tokens, options_.text_window);
  const auto cut = static_cast<std::uint32_t>(number / part.pairs);
  const auto index = static_cast<std::uint32_t>(&part - parts_.data());
  const auto random = philox::bits({cut, static_cast<std::uint32_t>(Purpose::windows), index, 0},
                                   philox::key_of(random_key(options_.seed, 0)));
  const std::int64_t first =
      possible.least() + below(static_cast<std::uint32_t>(possible.range()), random);
  const std::int64_t at = number % part.pairs;
  const std::int64_t begin = at == 0 ? 0 : first + (at - 1) * options_.text_window;
  const std::int64_t end = std::min(tokens, first + at * options_.text_window);
  return {begin, end - begin + 1};
}

std::span<const std::int32_t> BatchOrder::source(std::int64_t pair) const {
  if (options_.text_window > 0) return {};
  const auto [part, at] = find(pair);
  return part->store->source(at);
}

Features BatchOrder::features(std::int64_t pair) const {
  const auto [part, at] = find(pair);
  const FeatureStore& store = *part->store->features();
  const std::span<const float> values = store.values(at);
  return {.width = store.width(), .values = {values.begin(), values.end()}};
}

std::int64_t BatchOrder::source_rows(std::int64_t pair) const {
  if (options_.text_window > 0) return 0;
  const auto [part, at] = find(pair);
  return part->store->source_length(at);
}

std::span<const std::int32_t> BatchOrder::target(std::int64_t pair) const {
  const auto [part, at] = find(pair);
  if (options_.text_window == 0) return part->store->target(at);
  const auto [begin, tokens] = window(*part, at);
  return part->store->tokens().subspan(static_cast<std::size_t>(begin),
                                       static_cast<std::size_t>(tokens));
}

std::int64_t BatchOrder::target_tokens(std::int64_t pair) const {
  const auto length = static_cast<std::int64_t>(target(pair).size());
  return options_.text_window > 0 ? length - 1 : length + 1;
}

std::uint64_t BatchOrder::fingerprint() const {
  ContentHash hash;
  hash.update(kVersion).update(options_.seed);
  hash.update(static_cast<std::uint64_t>(options_.batch_tokens));
  hash.update(static_cast<std::uint64_t>(options_.source_tokens));
  hash.update(static_cast<std::uint64_t>(options_.window));
  hash.update(static_cast<std::uint64_t>(options_.by));
  if (options_.text_window > 0) hash.update(static_cast<std::uint64_t>(options_.text_window));
  for (const Part& part : parts_) {
    hash.update(part.store->key()).update(std::bit_cast<std::uint64_t>(part.weight));
  }
  return hash.digest().low;
}

}  // namespace nunchi
