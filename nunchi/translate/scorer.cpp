#include "nunchi/translate/scorer.h"

#include <algorithm>
#include <numeric>

#include "nunchi/ops/tensors.h"

namespace nunchi {

Scorer::Scorer(const Model& model, const Tokenizers& tokenizers, const ScorerOptions& options)
    : model_(as_translation_model(model)),
      context_(model.parameters().weights().context()),
      tokenizers_(tokenizers),
      options_(options) {
  tokenizers.check_fit(model_, "the scorer");
  options_.max_length = std::min(options.max_length, model_.max_length());
}

std::vector<PairScore> Scorer::score(std::span<const TextPair> pairs) const {
  std::vector<PairScore> scores(pairs.size());
  std::vector<Tokens> sources, targets;
  const auto most = static_cast<std::size_t>(options_.max_length - 1);
  const auto encoded = [&](const Tokenizer& tokenizer, const std::string& text, PairScore& score) {
    Tokens tokens = tokenizer.encode(text);
    if (tokens.size() > most) {
      tokens.resize(most);
      score.cut = true;
    }
    return tokens;
  };
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    sources.push_back(encoded(tokenizers_.source(), pairs[i].source, scores[i]));
    sources.back().push_back(tokenizers_.source().special().end);
    targets.push_back(encoded(tokenizers_.target(), pairs[i].target, scores[i]));
  }
  std::vector<std::size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return targets[a].size() > targets[b].size();
  });

  for (std::size_t begin = 0; begin < order.size();) {
    std::vector<Tokens> batch_sources, batch_targets;
    std::int64_t tokens = 0;
    std::size_t end = begin;
    for (; end < order.size(); ++end) {
      const auto length = static_cast<std::int64_t>(targets[order[end]].size()) + 1;
      if (end > begin && tokens + length > options_.batch_tokens) break;
      tokens += length;
      batch_sources.push_back(sources[order[end]]);
      batch_targets.push_back(targets[order[end]]);
    }
    const PairBatch batch =
        make_pair_batch(context_, batch_sources, batch_targets,
                        {model_.source_vocabulary(), model_.target_vocabulary()});
    const std::vector<double> losses = to_host_f64(model_.loss(batch, {}).tokens);
    std::size_t row = 0;
    for (; begin < end; ++begin) {
      const Tokens& target = targets[order[begin]];
      PairScore& score = scores[order[begin]];
      for (std::size_t t = 0; t <= target.size(); ++t, ++row) {
        const std::int32_t id = t < target.size() ? target[t] : tokenizers_.target().special().end;
        score.pieces.push_back(tokenizers_.target().piece(id));
        score.token_scores.push_back(static_cast<float>(-losses[row]));
        score.log_probability -= losses[row];
      }
    }
  }
  return scores;
}

}  // namespace nunchi
