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
// Raised when the same data and options would give another order.
constexpr std::uint64_t kVersion = 1;

// What a shuffle is for; each has random numbers of its own.
enum class Purpose : std::uint32_t { part = 1, epoch = 2, batches = 3, windows = 4 };

// Ways to cut a text into windows before the first one comes again.
constexpr std::int64_t kTurns = 64;

// "order": not the numbers of a step's dropout, which has the same seed.
RandomKey random_key(std::uint64_t seed, std::int64_t turn) {
  return {seed ^ 0x6F72646572ull, static_cast<std::uint64_t>(turn)};
}

// A number below `bound`, evenly: 64 random bits times the bound, without the lower 64.
std::uint32_t below(std::uint32_t bound, const philox::Words& random) {
  const std::uint64_t low = (std::uint64_t{random[0]} * bound) >> 32;
  return static_cast<std::uint32_t>((std::uint64_t{random[1]} * bound + low) >> 32);
}

// Fisher and Yates; `stream` tells shuffles of one purpose and key apart.
void shuffle(std::span<std::uint32_t> values, const RandomKey& key, Purpose purpose,
             std::uint32_t stream = 0) {
  const philox::Key words = philox::key_of(key);
  for (std::size_t left = values.size(); left > 1; --left) {
    const auto last = static_cast<std::uint32_t>(left - 1);
    const auto random = philox::bits({last, static_cast<std::uint32_t>(purpose), stream, 0}, words);
    std::swap(values[last], values[below(last + 1, random)]);
  }
}

// A pair in its window: sorted by its lengths, then by its place in the shuffled order.
struct Sortable {
  std::uint32_t target;
  std::uint32_t source;
  std::uint32_t place;
  std::uint32_t pair;

  friend auto operator<=>(const Sortable&, const Sortable&) = default;
};

// Where a text of so many tokens to be said can be cut for the first time. After that it is cut
// each `window` tokens; the first window and the last are shorter. Of the places up to a whole
// window those are taken, the larger part, that give the same number of windows.
class Cuts {
 public:
  Cuts(std::int64_t said, std::int64_t window)
      : whole_((said + window - 1) / window),
        rest_(said - (whole_ - 1) * window),
        window_(window),
        early_(whole_ > 1 && rest_ - 1 > window - rest_ + 1) {}

  std::int64_t count() const { return whole_ < 1 ? 0 : early_ ? whole_ + 1 : whole_; }
  std::int64_t least() const { return early_ ? 1 : rest_; }
  std::int64_t range() const { return early_ ? rest_ - 1 : window_ - rest_ + 1; }

 private:
  std::int64_t whole_;  // windows, were it cut at none of its tokens first
  std::int64_t rest_;   // tokens of the last of those
  std::int64_t window_;
  bool early_;  // before the place that would make the last window a whole one
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
    throw UsageError("a batch needs room for at least one token, and for 2^40 at most.");
  }
  if (options.text_window < 0 || options.text_window > kLongestWindow) {
    throw UsageError("a window of a text has at least one token, and 2^24 at most.");
  }
  if (options.window < 1) throw UsageError("a window of sentences needs at least one.");
  if (options_.source_tokens == 0) options_.source_tokens = 8 * options.batch_tokens;
  std::int64_t first = 0, all = 0;
  for (const WeightedPairs& part : parts) {
    if (!(part.weight > 0 && part.weight <= kMostWeight)) {
      throw UsageError("the weight of a part of the corpus is a number above 0, and 10^6 at most.");
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
    const std::int64_t pairs = pairs_of(*part.pairs), numbers = pairs * turns();
    const double asked = part.weight * static_cast<double>(pairs);
    if (numbers > kMostPairs - first || asked > static_cast<double>(kMostPairs - all)) {
      throw Error("an epoch can have " + grouped(kMostPairs) +
                  " pairs at most; these parts of the corpus, by their weights, have more.");
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

// A part is a sequence without end: its pairs in one random order, then in another, and so on. An
// epoch takes the next per_epoch of it.
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
      const std::int64_t turn = begin / pairs % turns();
      std::iota(pass.begin(), pass.end(), static_cast<std::uint32_t>(part.first + turn * pairs));
      // A whole pass needs no order of its own: it is shuffled with the epoch.
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

// Sorts the window, which has `before` pairs before it, and adds its batches.
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
    throw Error("there is no epoch " + std::to_string(epoch) + ".");
  }
  EpochBatches batches;
  batches.pairs_ = draw(epoch);
  const auto all = static_cast<std::int64_t>(batches.pairs_.size());
  // Windows of equal size, but for one pair: a short last one would have worse batches than the
  // others.
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

std::int64_t BatchOrder::turns() const { return options_.text_window > 0 ? kTurns : 1; }

std::int64_t BatchOrder::pairs_of(const PairStore& store) const {
  if (options_.text_window == 0) return store.size();
  return Cuts(static_cast<std::int64_t>(store.tokens().size()) - 1, options_.text_window).count();
}

BatchOrder::Window BatchOrder::window(const Part& part, std::int64_t number) const {
  const std::int64_t said = static_cast<std::int64_t>(part.store->tokens().size()) - 1;
  const Cuts cuts(said, options_.text_window);
  const auto turn = static_cast<std::uint32_t>(number / part.pairs);
  const auto place = static_cast<std::uint32_t>(&part - parts_.data());
  const auto random = philox::bits({turn, static_cast<std::uint32_t>(Purpose::windows), place, 0},
                                   philox::key_of(random_key(options_.seed, 0)));
  const std::int64_t first = cuts.least() + below(static_cast<std::uint32_t>(cuts.range()), random);
  const std::int64_t at = number % part.pairs;
  const std::int64_t begin = at == 0 ? 0 : first + (at - 1) * options_.text_window;
  const std::int64_t end = std::min(said, first + at * options_.text_window);
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
