#include "nunchi/training/objectives/span_corruption.h"

#include <algorithm>
#include <cmath>

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

// Separates these draws from those of a model's operations, whose numbers are small.
constexpr std::uint32_t kPlace = 0x80000000u;

// Numbers in [0, 1), one after another.
class Draws {
 public:
  explicit Draws(const TextDraws& draws)
      : key_(philox::key_of(draws.key)), sentence_(draws.sentence) {}
  double next() {
    return static_cast<double>(philox::bits({0, row_++, sentence_, kPlace}, key_)[0]) * 0x1p-32;
  }

 private:
  philox::Key key_;
  std::uint32_t sentence_;
  std::uint32_t row_ = 0;
};

// `chosen` of the numbers from 0 to count - 1, ascending; all sets are equally likely.
std::vector<std::int64_t> choose(std::int64_t chosen, std::int64_t count, Draws& draws) {
  std::vector<std::int64_t> found;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto wanted = static_cast<double>(chosen - static_cast<std::int64_t>(found.size()));
    if (draws.next() * static_cast<double>(count - i) < wanted) found.push_back(i);
  }
  return found;
}

// The number of tokens to remove, and the number of spans.
struct Sizes {
  std::int64_t noise, spans;
};

Sizes sizes_of(std::int64_t length, const SpanCorruptionOptions& options, std::int64_t sentinels) {
  const auto noise =
      std::clamp<std::int64_t>(std::llround(options.noise * static_cast<double>(length)), 1,
                               std::max(length - 1, std::int64_t{1}));
  // At least one token separates two spans.
  const std::int64_t most = std::min({sentinels, noise, length - noise + 1});
  return {noise, std::clamp<std::int64_t>(
                     std::llround(static_cast<double>(noise) / options.mean_span), 1, most)};
}

}  // namespace

CorruptedText corrupt_spans(const Tokens& text, const SpanCorruptionOptions& options,
                            std::span<const std::int32_t> sentinels, const TextDraws& draws) {
  if (text.empty()) throw Error("a text without tokens cannot be corrupted.");
  if (sentinels.empty()) throw Error("a text cannot be corrupted without sentinels.");
  const auto length = static_cast<std::int64_t>(text.size());
  const auto [noise, spans] =
      sizes_of(length, options, static_cast<std::int64_t>(sentinels.size()));
  Draws numbers(draws);
  // Where each span ends among the removed tokens; how many tokens are kept before each span.
  std::vector<std::int64_t> ends = choose(spans - 1, noise - 1, numbers);
  for (std::int64_t& end : ends) ++end;
  ends.push_back(noise);
  const std::vector<std::int64_t> kept_before = choose(spans, length - noise + 1, numbers);

  CorruptedText found;
  auto from = text.begin();
  std::int64_t kept = 0, taken = 0;
  for (std::size_t s = 0; s < ends.size(); ++s) {
    const auto stay = from + (kept_before[s] - kept), gone = stay + (ends[s] - taken);
    found.source.insert(found.source.end(), from, stay);
    found.source.push_back(sentinels[s]);
    found.target.push_back(sentinels[s]);
    found.target.insert(found.target.end(), stay, gone);
    from = gone;
    kept = kept_before[s];
    taken = ends[s];
  }
  found.source.insert(found.source.end(), from, text.end());
  return found;
}

std::vector<std::int32_t> sentinels_of(const Tokenizer& tokenizer) {
  std::vector<std::int32_t> found;
  const auto name = [&] { return "<extra_id_" + std::to_string(found.size()) + ">"; };
  // Most tokenizers have them one after another, ascending or descending.
  for (bool more = true; more;) {
    more = false;
    for (std::int32_t id = 0; id < tokenizer.vocabulary(); ++id) {
      if (tokenizer.piece(id) != name()) continue;
      found.push_back(id);
      more = true;
    }
  }
  return found;
}

std::int64_t longest_corruption(std::int64_t max_length, const TrainingOptions& options) {
  std::int64_t longest = max_length;
  // The decoder reads its start token, the sentinels and the removed tokens.
  for (std::int64_t length = 1; length < max_length; ++length) {
    const auto [noise, spans] = sizes_of(length, options.span_corruption, length);
    longest = std::max(longest, 1 + noise + spans);
  }
  return longest;
}

SpanCorruptionObjective::SpanCorruptionObjective(const ObjectiveParts& parts)
    : model_(as_translation_model(parts.model)),
      context_(parts.context),
      options_(parts.options.span_corruption),
      label_smoothing_(parts.options.label_smoothing),
      source_end_(parts.tokenizers.source().special().end),
      tokens_(parts.tokenizers.decoder()),
      sentinels_(sentinels_of(parts.tokenizers.target())) {
  if (!parts.tokenizers.shared()) {
    throw Error("span corruption needs one tokenizer for both sides: 'tokenizer.shared: true'.");
  }
  if (sentinels_.empty()) {
    throw Error(
        "span corruption needs symbols that replace the removed spans: put <extra_id_0>, "
        "<extra_id_1>, … into 'tokenizer.symbols'.");
  }
}

ObjectiveLoss SpanCorruptionObjective::loss(const HostBatch& batch,
                                            std::int32_t first_sentence) const {
  const bool learning = context_.is_training();
  std::vector<Tokens> sources, targets;
  for (std::size_t i = 0; i < batch.targets.size(); ++i) {
    CorruptedText text = corrupt_spans(batch.targets[i], options_, sentinels_,
                                       draws_for(context_, batch, i, first_sentence));
    text.source.push_back(source_end_);
    sources.push_back(std::move(text.source));
    targets.push_back(tokens_.begun(text.target));
  }
  const PairBatch pairs = make_pair_batch(
      make_source(context_, std::move(sources), model_.inputs(), first_sentence), targets,
      model_.target_vocabulary(), {.tokens = tokens_, .first_sentence = first_sentence});
  return {model_.loss(pairs, {.smoothing = learning ? label_smoothing_ : 0}).total,
          pairs.target.rows.rows};
}

}  // namespace nunchi
