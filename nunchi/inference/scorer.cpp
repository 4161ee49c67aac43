#include "nunchi/inference/scorer.h"

#include <algorithm>

#include "nunchi/evaluation/perplexity.h"
#include "nunchi/inference/length_batches.h"
#include "nunchi/inference/source_line.h"
#include "nunchi/ops/tensors.h"

namespace nunchi {
namespace {

// Indices of the targets of each batch. The lengths count one more token, the end of a target.
std::vector<std::vector<std::size_t>> batches_of(std::span<const Tokens> targets,
                                                 std::int64_t batch_tokens) {
  std::vector<std::int64_t> lengths;
  for (const Tokens& target : targets) lengths.push_back(std::ssize(target) + 1);
  return length_batches(lengths, {.tokens = batch_tokens});
}

// Adds the pieces and log-probabilities of the labels to `score`. `losses` may be longer than
// `labels`.
void add_scores(const Tokenizer& tokenizer, std::span<const std::int32_t> labels,
                std::span<const double> losses, PairScore& score) {
  for (std::size_t t = 0; t < labels.size(); ++t) {
    score.pieces.push_back(tokenizer.piece(labels[t]));
    score.token_scores.push_back(static_cast<float>(-losses[t]));
    score.log_probability -= losses[t];
  }
}

// fallback_share() of the tokens of a pair.
double share_of_both(const Tokenizers& tokenizers, const Tokens& source, const Tokens& target) {
  const auto size = [](const Tokens& tokens) { return static_cast<double>(tokens.size()); };
  if (source.empty() && target.empty()) return 0;
  const double unknown = fallback_share(tokenizers.source(), source) * size(source) +
                         fallback_share(tokenizers.target(), target) * size(target);
  return unknown / (size(source) + size(target));
}

}  // namespace

void ScoreTotals::add(std::span<const PairScore> scores) {
  for (const PairScore& score : scores) {
    ++count;
    cut += score.cut ? 1 : 0;
    unknown += score.unknown_share >= kUnknownLimit ? 1 : 0;
    tokens += std::ssize(score.pieces);
    log_probability += score.log_probability;
  }
}

double ScoreTotals::perplexity() const { return evaluation::perplexity(-log_probability, tokens); }

Scorer::Scorer(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
               const ScorerOptions& options)
    : model_(as_translation_model(model)),
      context_(context),
      tokenizers_(tokenizers),
      options_(options) {
  tokenizers.check_fit(model, "the scorer");
  options_.max_length = std::min(options.max_length, model_.max_length());
}

std::vector<PairScore> Scorer::score(std::span<const TextPair> pairs) const {
  std::vector<PairScore> scores(pairs.size());
  std::vector<Tokens> sources, targets;
  const auto max_tokens = static_cast<std::size_t>(options_.max_length - 1);
  const auto encoded = [&](const Tokenizer& tokenizer, const std::string& text, PairScore& score) {
    Tokens tokens = tokenizer.encode(text);
    if (tokens.size() > max_tokens) {
      tokens.resize(max_tokens);
      score.cut = true;
    }
    return tokens;
  };
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    sources.push_back(encoded(tokenizers_.source(), pairs[i].source, scores[i]));
    const Tokens target = encoded(tokenizers_.target(), pairs[i].target, scores[i]);
    scores[i].unknown_share = share_of_both(tokenizers_, sources.back(), target);
    sources.back().push_back(tokenizers_.source().special().end);
    targets.push_back(tokenizers_.decoder().with_forced_first(target));
  }
  for (const std::vector<std::size_t>& indices : batches_of(targets, options_.batch_tokens)) {
    std::vector<Tokens> batch_sources, batch_targets;
    for (const std::size_t i : indices) {
      batch_sources.push_back(sources[i]);
      batch_targets.push_back(targets[i]);
    }
    const TokenBatch source =
        make_token_batch(context_, batch_sources, model_.input_sizes().source_vocabulary);
    const PairBatch batch = make_pair_batch(source, batch_targets, model_.target_vocabulary(),
                                            {.tokens = tokenizers_.decoder()});
    const std::vector<double> losses = to_host_f64(model_.loss(batch, {}).tokens);
    std::span<const double> rest = losses;
    for (const std::size_t i : indices) {
      Tokens labels = targets[i];
      labels.push_back(tokenizers_.decoder().end);
      add_scores(tokenizers_.target(), labels, rest, scores[i]);
      rest = rest.subspan(labels.size());
    }
    if (!options_.alignment) continue;
    const auto attentions = cross_attention(model_, source, batch_targets, tokenizers_.decoder());
    for (std::size_t b = 0; b < indices.size(); ++b) {
      PairScore& score = scores[indices[b]];
      score.attention = {.targets = score.pieces,
                         .weights = alignment_weights(attentions[b], options_.alignment_heads),
                         .last_source = LastPiece::end_token,
                         .last_target = LastPiece::end_token};
      for (const std::int32_t id : batch_sources[b]) {
        score.attention.sources.push_back(tokenizers_.source().piece(id));
      }
    }
  }
  return scores;
}

LineScorer::LineScorer(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
                       const ScorerOptions& options)
    : model_(as_language_model(model)),
      context_(context),
      tokenizer_(tokenizers.target()),
      options_(options) {
  tokenizers.check_fit(model, "the scorer");
  options_.max_length = std::min(options.max_length, model_.max_length());
}

std::vector<PairScore> LineScorer::score(std::span<const std::string> lines) const {
  std::vector<PairScore> scores(lines.size());
  std::vector<Tokens> texts;  // line end, line, line end
  for (std::size_t i = 0; i < lines.size(); ++i) {
    Tokens text = tokenizer_.encode(lines[i]);
    const auto max_tokens = static_cast<std::size_t>(options_.max_length - 1);
    if (text.size() > max_tokens) {
      text.resize(max_tokens);
      scores[i].cut = true;
    }
    scores[i].unknown_share = fallback_share(tokenizer_, text);
    text.insert(text.begin(), tokenizer_.line_end());
    text.push_back(tokenizer_.line_end());
    texts.push_back(std::move(text));
  }
  for (const std::vector<std::size_t>& indices : batches_of(texts, options_.batch_tokens)) {
    std::vector<Tokens> batch_texts;
    batch_texts.reserve(indices.size());
    for (const std::size_t i : indices) batch_texts.push_back(texts[i]);
    const TextBatch batch = make_text_batch(context_, batch_texts, model_.target_vocabulary());
    const std::vector<double> losses = to_host_f64(model_.loss(batch, {}).tokens);
    std::span<const double> rest = losses;
    for (const std::size_t i : indices) {
      const auto labels = std::span<const std::int32_t>(texts[i]).subspan(1);
      add_scores(tokenizer_, labels, rest, scores[i]);
      rest = rest.subspan(labels.size());
    }
  }
  return scores;
}

}  // namespace nunchi
