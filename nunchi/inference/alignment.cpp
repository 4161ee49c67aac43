#include "nunchi/inference/alignment.h"

#include <algorithm>

#include "nunchi/base/error.h"
#include "nunchi/text/words.h"
#include "nunchi/trace/trace.h"

namespace nunchi {
namespace {

// The second-to-last layer with cross-attention, or the only one.
const TapRecord& alignment_layer(const Trace& trace) {
  std::vector<const TapRecord*> layers;
  for (const TapRecord& record : trace.records()) {
    if (record.part == "cross_attention" || record.part == "state_attention")
      layers.push_back(&record);
  }
  if (layers.empty())
    throw Error("alignments need cross-attention, which this model does not have.");
  return *layers[layers.size() > 1 ? layers.size() - 2 : 0];
}

}  // namespace

std::vector<std::vector<float>> cross_attention(const TranslationModel& model, const Source& source,
                                                std::span<const Tokens> targets,
                                                const DecoderTokens& tokens) {
  Trace trace({Tap::attention_weights});
  {
    const TraceScope scope(source.context(), trace);
    model.loss(make_pair_batch(source, targets, model.target_vocabulary(), {.tokens = tokens}), {});
  }
  const TapRecord& layer = alignment_layer(trace);
  std::vector<std::vector<float>> means;
  for (std::size_t b = 0; b < targets.size(); ++b) {
    const auto size = static_cast<std::size_t>(layer.lengths[b]) *
                      static_cast<std::size_t>(layer.key_lengths[b]);  // weights of one head
    const float* weights = layer.values.data() + layer.offsets[b];
    std::vector<float>& mean = means.emplace_back(size, 0.0f);
    for (int h = 0; h < layer.heads; ++h) {
      for (std::size_t i = 0; i < size; ++i) {
        mean[i] +=
            weights[static_cast<std::size_t>(h) * size + i] / static_cast<float>(layer.heads);
      }
    }
  }
  return means;
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
  for (std::size_t t = 0; t < rows; ++t) {
    const auto row = static_cast<std::size_t>(targets.word_of_piece[t]);
    const auto pieces_of_word = static_cast<float>(targets.sizes[row]);
    for (std::size_t s = 0; s < columns; ++s) {
      merged.weights[row * width + static_cast<std::size_t>(sources.word_of_piece[s])] +=
          pieces.weights[t * columns + s] / pieces_of_word;
    }
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
