#include "nunchi/inference/alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "nunchi/base/error.h"
#include "nunchi/text/unicode.h"
#include "nunchi/text/words.h"
#include "nunchi/trace/trace.h"

namespace nunchi {
namespace {

// Of the characters above U+007F.
bool is_space_or_punctuation(char32_t c) {
  constexpr char32_t kWordStart = 0x2581;  // ▁
  return c < 0xC0 || (c >= 0x2000 && c < 0x2070) || c == kWordStart || (c >= 0x3000 && c < 0x3040);
}

bool has_letter_or_digit(std::string_view piece) {
  while (!piece.empty()) {
    const char32_t c = take_character(piece);
    if (c < 0x80 ? std::isalnum(static_cast<int>(c)) != 0 : !is_space_or_punctuation(c))
      return true;
  }
  return false;
}

}  // namespace

AlignmentHeads default_alignment_heads(int layers, int heads) {
  AlignmentHeads chosen;
  for (int layer = std::max(0, layers - 2); layer < layers; ++layer) {
    for (int head = 0; head < heads; ++head) chosen.push_back({layer, head});
  }
  return chosen;
}

std::span<const float> CrossAttention::of(const AlignmentHead& head) const {
  const std::size_t size = targets * sources;
  return std::span(weights).subspan(
      size * (static_cast<std::size_t>(head.layer) * static_cast<std::size_t>(heads) +
              static_cast<std::size_t>(head.head)),
      size);
}

std::vector<CrossAttention> cross_attention(const TranslationModel& model, const Source& source,
                                            std::span<const Tokens> targets,
                                            const DecoderTokens& tokens) {
  Trace trace({Tap::attention_weights});
  {
    const TraceScope scope(source.context(), trace);
    model.loss(make_pair_batch(source, targets, model.target_vocabulary(), {.tokens = tokens}), {});
  }
  std::vector<CrossAttention> pairs(targets.size());
  for (const TapRecord& layer : trace.records()) {
    if (layer.part != "cross_attention" && layer.part != "state_attention") continue;
    for (std::size_t b = 0; b < pairs.size(); ++b) {
      CrossAttention& pair = pairs[b];
      ++pair.layers;
      pair.heads = layer.heads;
      pair.targets = static_cast<std::size_t>(layer.lengths[b]);
      pair.sources = static_cast<std::size_t>(layer.key_lengths[b]);
      const auto begin = layer.values.begin() + layer.offsets[b];
      const auto size = static_cast<std::ptrdiff_t>(pair.targets * pair.sources) * layer.heads;
      pair.weights.insert(pair.weights.end(), begin, begin + size);
    }
  }
  if (!pairs.empty() && pairs.front().layers == 0)
    throw Error("alignments need cross-attention, which this model does not have.");
  return pairs;
}

std::vector<float> alignment_weights(const CrossAttention& attention, const AlignmentHeads& heads) {
  if (heads.empty()) {
    return alignment_weights(attention, default_alignment_heads(attention.layers, attention.heads));
  }
  std::vector<float> mean(attention.targets * attention.sources, 0.0f);
  for (const AlignmentHead& head : heads) {
    if (head.layer < 0 || head.layer >= attention.layers || head.head < 0 ||
        head.head >= attention.heads) {
      throw Error(fmt::format(
          "alignment_heads of generation_config.json names layer {} and head {}, but this model "
          "has {} layers and {} heads; both are counted from 0.",
          head.layer, head.head, attention.layers, attention.heads));
    }
    const std::span<const float> weights = attention.of(head);
    for (std::size_t i = 0; i < mean.size(); ++i) {
      mean[i] += weights[i] / static_cast<float>(heads.size());
    }
  }
  return mean;
}

AttentionMatrix merged_into_words(const AttentionMatrix& pieces) {
  const std::size_t rows = pieces.targets.size(), columns = pieces.sources.size();
  if (pieces.weights.size() != rows * columns) {
    throw Error("attention: " + std::to_string(pieces.weights.size()) + " weights for " +
                std::to_string(rows) + " targets and " + std::to_string(columns) + " sources.");
  }
  const Words sources = words_of(pieces.sources, pieces.last_source),
              targets = words_of(pieces.targets, pieces.last_target);
  AttentionMatrix merged{.sources = sources.texts,
                         .targets = targets.texts,
                         .last_source = pieces.last_source,
                         .last_target = pieces.last_target};
  const std::size_t width = sources.texts.size();
  merged.weights.assign(targets.texts.size() * width, 0.0f);
  std::size_t begin = 0;  // the first piece of the word
  for (std::size_t word = 0; word < targets.texts.size(); ++word) {
    const std::size_t end = begin + static_cast<std::size_t>(targets.sizes[word]);
    std::size_t t = begin;
    while (t < end && !has_letter_or_digit(pieces.targets[t])) ++t;
    if (t == end) t = begin;
    for (std::size_t s = 0; s < columns; ++s) {
      merged.weights[word * width + static_cast<std::size_t>(sources.word_of_piece[s])] +=
          pieces.weights[t * columns + s];
    }
    begin = end;
  }
  return merged;
}

std::vector<std::pair<int, int>> hard_alignment(const AttentionMatrix& words) {
  const auto count = [](const std::vector<std::string>& texts, LastPiece last) {
    return texts.size() - (last == LastPiece::end_token && !texts.empty() ? 1 : 0);
  };
  const std::size_t width = words.sources.size();
  const std::size_t sources = count(words.sources, words.last_source),
                    targets = count(words.targets, words.last_target);
  std::vector<std::pair<int, int>> pairs;
  for (std::size_t t = 0; t < targets && sources > 0; ++t) {
    const float* row = words.weights.data() + t * width;
    const auto best = std::max_element(row, row + sources) - row;
    pairs.emplace_back(static_cast<int>(best), static_cast<int>(t));
  }
  return pairs;
}

}  // namespace nunchi
