#include "nunchi/training/objectives/span_corruption.h"

#include <algorithm>
#include <cmath>

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

// The operation number of these draws (base/random.h), distinct from those of a model's operations,
// which are small.
constexpr std::uint32_t kOperation = 0x80000000u;

// A sequence of uniform random numbers in [0, 1).
class UniformNumbers {
 public:
  explicit UniformNumbers(const TextDraws& draws)
      : key_(philox::key_of(draws.key)), sentence_(draws.sentence) {}
  double next() {
    return static_cast<double>(philox::bits({0, row_++, sentence_, kOperation}, key_)[0]) * 0x1p-32;
  }

 private:
  philox::Key key_;
  std::uint32_t sentence_;
  std::uint32_t row_ = 0;
};

// Chooses `wanted` of the numbers from 0 to count - 1, ascending; all sets are equally likely.
std::vector<std::int64_t> choose(std::int64_t wanted, std::int64_t count, UniformNumbers& numbers) {
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto missing = static_cast<double>(wanted - static_cast<std::int64_t>(chosen.size()));
    if (numbers.next() * static_cast<double>(count - i) < missing) chosen.push_back(i);
  }
  return chosen;
}

struct Sizes {
  std::int64_t noise;  // number of tokens to remove
  std::int64_t spans;  // number of spans
};

Sizes sizes_of(std::int64_t length, const SpanCorruptionOptions& options, std::int64_t sentinels) {
  const auto noise =
      std::clamp<std::int64_t>(std::llround(options.noise * static_cast<double>(length)), 1,
                               std::max(length - 1, std::int64_t{1}));
  // At least one kept token separates two spans.
  const std::int64_t max_spans = std::min({sentinels, noise, length - noise + 1});
  return {noise, std::clamp<std::int64_t>(
                     std::llround(static_cast<double>(noise) / options.mean_span), 1, max_spans)};
}

}  // namespace

CorruptedText corrupt_spans(const Tokens& text, const SpanCorruptionOptions& options,
                            std::span<const std::int32_t> sentinels, const TextDraws& draws) {
  if (text.empty()) throw Error("a text without tokens cannot be corrupted.");
  if (sentinels.empty()) throw Error("a text cannot be corrupted without sentinels.");
  const auto length = static_cast<std::int64_t>(text.size());
  const auto [noise, spans] =
      sizes_of(length, options, static_cast<std::int64_t>(sentinels.size()));
  UniformNumbers numbers(draws);
  // ends: the number of removed tokens up to the end of each span. kept_before: the number of kept
  // tokens before each span.
  std::vector<std::int64_t> ends = choose(spans - 1, noise - 1, numbers);
  for (std::int64_t& end : ends) ++end;
  ends.push_back(noise);
  const std::vector<std::int64_t> kept_before = choose(spans, length - noise + 1, numbers);

  CorruptedText corrupted;
  auto position = text.begin();
  std::int64_t kept = 0, removed = 0;
  for (std::size_t s = 0; s < ends.size(); ++s) {
    const auto span_begin = position + (kept_before[s] - kept);
    const auto span_end = span_begin + (ends[s] - removed);
    corrupted.source.insert(corrupted.source.end(), position, span_begin);
    corrupted.source.push_back(sentinels[s]);
    corrupted.target.push_back(sentinels[s]);
    corrupted.target.insert(corrupted.target.end(), span_begin, span_end);
    position = span_end;
    kept = kept_before[s];
    removed = ends[s];
  }
  corrupted.source.insert(corrupted.source.end(), position, text.end());
  return corrupted;
}

std::vector<std::int32_t> sentinels_of(const Tokenizer& tokenizer) {
  std::vector<std::int32_t> found;
  const auto name = [&] { return "<extra_id_" + std::to_string(found.size()) + ">"; };
  // Repeats the pass while it finds more: sentinels may be in any order, often descending.
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

std::int64_t max_corrupted_length(std::int64_t max_length, const TrainingOptions& options) {
  std::int64_t max_tokens = max_length;
  // The decoder reads its start token, the sentinels and the removed tokens.
  for (std::int64_t length = 1; length < max_length; ++length) {
    const auto [noise, spans] = sizes_of(length, options.span_corruption, length);
    max_tokens = std::max(max_tokens, 1 + noise + spans);
  }
  return max_tokens;
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
  const bool training = context_.is_training();
  std::vector<Tokens> sources, targets;
  for (std::size_t i = 0; i < batch.targets.size(); ++i) {
    CorruptedText text = corrupt_spans(batch.targets[i], options_, sentinels_,
                                       draws_for(context_, batch, i, first_sentence));
    text.source.push_back(source_end_);
    sources.push_back(std::move(text.source));
    targets.push_back(tokens_.with_forced_first(text.target));
  }
  const PairBatch pairs = make_pair_batch(
      make_source(context_, std::move(sources), model_.input_sizes(), first_sentence), targets,
      model_.target_vocabulary(), {.tokens = tokens_, .first_sentence = first_sentence});
  return {model_.loss(pairs, {.smoothing = training ? label_smoothing_ : 0}).total,
          pairs.target.rows.rows};
}

}  // namespace nunchi
