#include "nunchi/inference/alignment_choice.h"

#include <algorithm>
#include <optional>

namespace nunchi {
namespace {

constexpr std::size_t kBatchPairs = 64;

std::size_t words_in(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, ' ')) + 1;
}

std::vector<std::string> pieces_of(const Tokenizer& tokenizer, const Tokens& tokens) {
  std::vector<std::string> pieces;
  for (const std::int32_t id : tokens) pieces.push_back(tokenizer.piece(id));
  return pieces;
}

}  // namespace

LinkedAttention::LinkedAttention(ContextBase& context, const Model& model,
                                 const Tokenizers& tokenizers, std::span<const LinkedPair> pairs) {
  const TranslationModel& translation_model = as_translation_model(model);
  tokenizers.check_fit(model, "the alignment");
  for (std::size_t begin = 0; begin < pairs.size(); begin += kBatchPairs) {
    const auto batch = pairs.subspan(begin, std::min(kBatchPairs, pairs.size() - begin));
    std::vector<Tokens> sources, targets;
    for (const LinkedPair& pair : batch) {
      sources.push_back(tokenizers.source().encode(pair.source));
      sources.back().push_back(tokenizers.source().special().end);
      targets.push_back(
          tokenizers.decoder().with_forced_first(tokenizers.target().encode(pair.target)));
    }
    const std::vector<CrossAttention> attentions = cross_attention(
        translation_model,
        make_token_batch(context, sources, translation_model.input_sizes().source_vocabulary),
        targets, tokenizers.decoder());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      targets[i].push_back(tokenizers.decoder().end);
      add(attentions[i], pieces_of(tokenizers.source(), sources[i]),
          pieces_of(tokenizers.target(), targets[i]), batch[i]);
    }
  }
}

void LinkedAttention::add(const CrossAttention& attention, std::vector<std::string> sources,
                          std::vector<std::string> targets, const LinkedPair& pair) {
  layers_ = attention.layers;
  heads_ = attention.heads;
  AttentionMatrix pieces{.sources = std::move(sources),
                         .targets = std::move(targets),
                         .last_source = LastPiece::end_token,
                         .last_target = LastPiece::end_token};
  const std::size_t first = words_.size();
  for (const AlignmentHead& head : all_heads()) {
    pieces.weights = alignment_weights(attention, {head});
    const AttentionMatrix words = merged_into_words(pieces);
    // One more word on each side: </s>.
    if (words.sources.size() != words_in(pair.source) + 1 ||
        words.targets.size() != words_in(pair.target) + 1) {
      return;
    }
    if (words_.size() == first) add_words(pair, words.sources.size() - 1);
    for (std::size_t w = first; w < words_.size(); ++w) {
      const auto row = words.weights.begin() +
                       static_cast<std::ptrdiff_t>(words_[w].target * words.sources.size());
      words_[w].weights.insert(words_[w].weights.end(), row,
                               row + static_cast<std::ptrdiff_t>(words_[w].sources));
    }
  }
}

void LinkedAttention::add_words(const LinkedPair& pair, std::size_t sources) {
  for (std::size_t target = 0; target < words_in(pair.target); ++target) {
    Word word{.target = target, .sources = sources};
    for (const WordLink& link : pair.links) {
      if (static_cast<std::size_t>(link.target) == target) word.right.push_back(link.source);
    }
    if (!word.right.empty()) words_.push_back(std::move(word));
  }
}

AlignmentHeads LinkedAttention::all_heads() const {
  AlignmentHeads all;
  for (int layer = 0; layer < layers_; ++layer) {
    for (int head = 0; head < heads_; ++head) all.push_back({layer, head});
  }
  return all;
}

AlignmentCount LinkedAttention::count(const AlignmentHeads& heads) const {
  if (heads.empty() && !words_.empty()) return count(default_alignment_heads(layers_, heads_));
  AlignmentCount count;
  std::vector<float> sum;
  for (const Word& word : words_) {
    sum.assign(word.sources, 0.0f);
    for (const AlignmentHead& head : heads) {
      const auto index = static_cast<std::size_t>(head.layer) * static_cast<std::size_t>(heads_) +
                         static_cast<std::size_t>(head.head);
      const std::span<const float> weights =
          std::span(word.weights).subspan(index * word.sources, word.sources);
      for (std::size_t s = 0; s < sum.size(); ++s) sum[s] += weights[s];
    }
    const auto strongest = static_cast<int>(std::ranges::max_element(sum) - sum.begin());
    count.right += std::ranges::find(word.right, strongest) != word.right.end() ? 1 : 0;
    ++count.words;
  }
  return count;
}

AlignmentHeads LinkedAttention::improved(AlignmentHeads heads) const {
  std::int64_t most = count(heads).right;
  while (true) {
    std::optional<AlignmentHeads> better;
    for (const AlignmentHead& head : all_heads()) {
      AlignmentHeads changed = heads;
      if (std::erase(changed, head) == 0) changed.push_back(head);
      if (changed.empty()) continue;
      const std::int64_t right = count(changed).right;
      if (right <= most) continue;
      most = right;
      better = std::move(changed);
    }
    if (!better) return heads;
    heads = std::move(*better);
  }
}

AlignmentHeads LinkedAttention::best_heads() const {
  if (words_.empty()) return {};
  const auto right = [&](const AlignmentHeads& heads) { return count(heads).right; };
  std::vector<AlignmentHeads> singles;
  for (const AlignmentHead& head : all_heads()) singles.push_back({head});
  AlignmentHeads from_one = improved(*std::ranges::max_element(singles, {}, right));
  AlignmentHeads from_default = improved(default_alignment_heads(layers_, heads_));
  AlignmentHeads best = right(from_one) > right(from_default) ? from_one : from_default;
  std::ranges::sort(best, {}, [](const AlignmentHead& h) { return std::pair(h.layer, h.head); });
  return best;
}

}  // namespace nunchi
