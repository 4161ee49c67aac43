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

constexpr std::int64_t kMaxPairs = std::numeric_limits<std::uint32_t>::max();
constexpr double kMaxWeight = 1e6;
constexpr std::int64_t kMaxBatchTokens = std::int64_t{1} << 40;
constexpr std::int64_t kMaxTextWindow = std::int64_t{1} << 24;
// Increase this when the same data and options give another order than before.
constexpr std::uint64_t kVersion = 1;

// The purpose of a random draw; each has its own random numbers.
enum class Purpose : std::uint32_t { part = 1, epoch = 2, batches = 3, windows = 4 };

// Number of ways in which a text is cut into windows; passes over the text cycle through them.
constexpr std::int64_t kCuts = 64;

// The constant ("order") makes these draws independent of dropout, which has the same seed.
RandomKey random_key(std::uint64_t seed, std::int64_t pass) {
  return {seed ^ 0x6F72646572ull, static_cast<std::uint64_t>(pass)};
}

// A uniform random number below `bound`: the upper half of 64 random bits times the bound.
std::uint32_t random_below(std::uint32_t bound, const philox::Words& random) {
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
    std::swap(values[last], values[random_below(last + 1, random)]);
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

// The possible positions of the first cut in a text with `tokens` tokens to predict. After it the
// text is cut every `window` tokens, so only the first and the last window can be shorter. The
// number of windows must not depend on the first cut: cuts before `rest_` give one window more than
// later ones, so only the larger of these two ranges is used.
class FirstCut {
 public:
  FirstCut(std::int64_t tokens, std::int64_t window)
      : min_windows_((tokens + window - 1) / window),
        rest_(tokens - (min_windows_ - 1) * window),
        window_(window),
        is_early_(min_windows_ > 1 && rest_ - 1 > window - rest_ + 1) {}

  std::int64_t window_count() const {
    return min_windows_ < 1 ? 0 : is_early_ ? min_windows_ + 1 : min_windows_;
  }
  // The range of the first cut is [smallest, smallest + range).
  std::int64_t smallest() const { return is_early_ ? 1 : rest_; }
  std::int64_t range() const { return is_early_ ? rest_ - 1 : window_ - rest_ + 1; }

 private:
  std::int64_t min_windows_;  // number of windows if the first one is full
  std::int64_t rest_;         // tokens of the last window in that case
  std::int64_t window_;
  bool is_early_;  // the first cut is before rest_, which gives one window more
};

}  // namespace

std::span<const std::uint32_t> EpochBatches::batch(std::int64_t number) const {
  const std::size_t index = order_.at(static_cast<std::size_t>(number));
  return std::span(pairs_).subspan(begins_[index], begins_[index + 1] - begins_[index]);
}

BatchOrder::BatchOrder(std::vector<WeightedPairs> parts, const BatchOptions& options)
    : options_(options) {
  if (options.batch_tokens < 1 || options.batch_tokens > kMaxBatchTokens ||
      options.source_tokens < 0 || options.source_tokens > kMaxBatchTokens) {
    throw UsageError("a batch must have from 1 to 2^40 tokens.");
  }
  if (options.text_window < 0 || options.text_window > kMaxTextWindow) {
    throw UsageError("a window of a text must have from 1 to 2^24 tokens.");
  }
  if (options.sort_window < 1) throw UsageError("sort_window must be at least 1.");
  if (options_.source_tokens == 0) options_.source_tokens = 8 * options.batch_tokens;
  std::int64_t first = 0, total = 0;
  for (const WeightedPairs& part : parts) {
    if (!(part.weight > 0 && part.weight <= kMaxWeight)) {
      throw UsageError("the weight of a part of the corpus must be above 0 and at most 10^6.");
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
    const std::int64_t pairs = pairs_of(*part.pairs), numbers = pairs * cut_count();
    const double requested = part.weight * static_cast<double>(pairs);
    if (numbers > kMaxPairs - first || requested > static_cast<double>(kMaxPairs - total)) {
      throw Error("an epoch can have at most " + grouped(kMaxPairs) +
                  " pairs; with these weights the corpus has more.");
    }
    const std::int64_t per_epoch =
        pairs == 0 ? 0 : std::max<std::int64_t>(1, std::llround(requested));
    parts_.push_back({part.pairs, part.weight, first, pairs, per_epoch});
    first += numbers;
    total += per_epoch;
  }
}

std::int64_t BatchOrder::epoch_pairs() const {
  return std::accumulate(parts_.begin(), parts_.end(), std::int64_t{0},
                         [](std::int64_t sum, const Part& part) { return sum + part.per_epoch; });
}

// Each part is an infinite sequence of passes over its pairs, each pass in a new random order. An
// epoch takes the next per_epoch pairs of each part.
std::vector<std::uint32_t> BatchOrder::draw(std::int64_t epoch) const {
  std::vector<std::uint32_t> drawn, pass;
  drawn.reserve(static_cast<std::size_t>(epoch_pairs()));
  for (std::size_t index = 0; index < parts_.size(); ++index) {
    const Part& part = parts_[index];
    const std::int64_t pairs = part.pairs;
    std::int64_t begin = epoch * part.per_epoch;
    const std::int64_t end = begin + part.per_epoch;
    while (begin < end) {
      const std::int64_t from = begin % pairs;
      const std::int64_t count = std::min(end - begin, pairs - from);
      pass.resize(static_cast<std::size_t>(pairs));
      const std::int64_t cut = begin / pairs % cut_count();
      std::iota(pass.begin(), pass.end(), static_cast<std::uint32_t>(part.first + cut * pairs));
      // A whole pass needs no shuffle here: it is shuffled with the epoch.
      if (count < pairs) {
        shuffle(pass, random_key(options_.seed, begin / pairs), Purpose::part,
                static_cast<std::uint32_t>(index));
      }
      drawn.insert(drawn.end(), pass.begin() + from, pass.begin() + from + count);
      begin += count;
    }
  }
  shuffle(drawn, random_key(options_.seed, epoch), Purpose::epoch);
  return drawn;
}

// Sorts the window and appends its batches. The window starts at pair `first` of the epoch.
void BatchOrder::cut(std::span<std::uint32_t> window, std::int64_t first,
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
      batches.begins_.push_back(static_cast<std::uint32_t>(first + static_cast<std::int64_t>(i)));
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
  const auto pairs = static_cast<std::int64_t>(batches.pairs_.size());
  // Window sizes differ by at most one: a short last window would group lengths less well.
  const std::int64_t windows = (pairs + options_.sort_window - 1) / options_.sort_window;
  for (std::int64_t i = 0; i < windows; ++i) {
    const std::int64_t begin = i * (pairs / windows) + std::min(i, pairs % windows);
    const std::int64_t size = pairs / windows + (i < pairs % windows ? 1 : 0);
    cut(std::span(batches.pairs_)
            .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size)),
        begin, batches);
  }
  batches.order_.resize(batches.begins_.size());
  batches.begins_.push_back(static_cast<std::uint32_t>(pairs));
  std::iota(batches.order_.begin(), batches.order_.end(), std::uint32_t{0});
  shuffle(batches.order_, random_key(options_.seed, epoch), Purpose::batches);
  return batches;
}

std::pair<const BatchOrder::Part*, std::int64_t> BatchOrder::find(std::int64_t pair) const {
  const auto next_part =
      std::upper_bound(parts_.begin(), parts_.end(), pair,
                       [](std::int64_t number, const Part& part) { return number < part.first; });
  const Part& part = *std::prev(next_part);
  return {&part, pair - part.first};
}

std::int64_t BatchOrder::cut_count() const { return options_.text_window > 0 ? kCuts : 1; }

std::int64_t BatchOrder::pairs_of(const PairStore& store) const {
  if (options_.text_window == 0) return store.size();
  return FirstCut(store.token_count() - 1, options_.text_window).window_count();
}

BatchOrder::Window BatchOrder::window(const Part& part, std::int64_t number) const {
  const std::int64_t tokens = part.store->token_count() - 1;
  const FirstCut first_cut(tokens, options_.text_window);
  const auto cut = static_cast<std::uint32_t>(number / part.pairs);
  const auto index = static_cast<std::uint32_t>(&part - parts_.data());
  const auto random = philox::bits({cut, static_cast<std::uint32_t>(Purpose::windows), index, 0},
                                   philox::key_of(random_key(options_.seed, 0)));
  const std::int64_t first =
      first_cut.smallest() + random_below(static_cast<std::uint32_t>(first_cut.range()), random);
  const std::int64_t window_index = number % part.pairs;
  const std::int64_t begin =
      window_index == 0 ? 0 : first + (window_index - 1) * options_.text_window;
  const std::int64_t end = std::min(tokens, first + window_index * options_.text_window);
  return {begin, end - begin + 1};
}

PairTokens BatchOrder::read(std::int64_t pair, Tokens& buffer) const {
  const auto [part, number] = find(pair);
  if (options_.text_window == 0) return part->store->read(number, buffer);
  const auto [begin, tokens] = window(*part, number);
  buffer.resize(static_cast<std::size_t>(tokens));
  part->store->read_text(begin, buffer);
  return {.source = {}, .target = buffer};
}

Features BatchOrder::features(std::int64_t pair) const {
  const auto [part, number] = find(pair);
  const FeatureStore& store = *part->store->features();
  return {.width = store.width(), .values = store.values(number)};
}

void BatchOrder::check_intact() const {
  for (const Part& part : parts_) part.store->check_intact();
}

std::int64_t BatchOrder::source_rows(std::int64_t pair) const {
  if (options_.text_window > 0) return 0;
  const auto [part, number] = find(pair);
  return part->store->source_length(number);
}

std::int64_t BatchOrder::target_tokens(std::int64_t pair) const {
  const auto [part, number] = find(pair);
  if (options_.text_window > 0) return window(*part, number).tokens - 1;
  return part->store->target_length(number) + 1;
}

std::uint64_t BatchOrder::fingerprint() const {
  ContentHash hash;
  hash.update(kVersion).update(options_.seed);
  hash.update(static_cast<std::uint64_t>(options_.batch_tokens));
  hash.update(static_cast<std::uint64_t>(options_.source_tokens));
  hash.update(static_cast<std::uint64_t>(options_.sort_window));
  hash.update(static_cast<std::uint64_t>(options_.by));
  if (options_.text_window > 0) hash.update(static_cast<std::uint64_t>(options_.text_window));
  for (const Part& part : parts_) {
    hash.update(part.store->key()).update(std::bit_cast<std::uint64_t>(part.weight));
  }
  return hash.digest().low;
}

}  // namespace nunchi
