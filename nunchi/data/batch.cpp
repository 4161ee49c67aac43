#include "nunchi/data/batch.h"

#include <numeric>
#include <string>

#include "nunchi/base/error.h"
#include "nunchi/ops/tensors.h"

namespace nunchi {
namespace {

// Sentences one after another, filled up to the capacity with token 0.
Tensor flat_ids(ContextBase& context, std::span<const Tokens> sentences, const Ragged& rows,
                std::int64_t vocabulary) {
  Tokens all;
  all.reserve(static_cast<std::size_t>(rows.capacity));
  for (const Tokens& sentence : sentences) {
    for (const std::int32_t token : sentence) {
      if (token < 0 || token >= vocabulary) {
        throw Error("token " + std::to_string(token) + " is not in a vocabulary of " +
                    std::to_string(vocabulary) + ".");
      }
      all.push_back(token);
    }
  }
  all.resize(static_cast<std::size_t>(rows.capacity), 0);
  return from_host(context, all, {rows.capacity});
}

}  // namespace

TokenBatch make_token_batch(ContextBase& context, std::span<const Tokens> sentences,
                            std::int64_t vocabulary, std::int32_t first_sentence) {
  std::vector<std::int32_t> lengths, indices(sentences.size());
  for (const Tokens& sentence : sentences) {
    lengths.push_back(static_cast<std::int32_t>(sentence.size()));
  }
  std::iota(indices.begin(), indices.end(), first_sentence);
  TokenBatch batch;
  batch.rows = make_ragged(context, lengths, indices);
  batch.ids = flat_ids(context, sentences, batch.rows, vocabulary);
  batch.vocabulary = vocabulary;
  return batch;
}

TextBatch make_text_batch(ContextBase& context, std::span<const Tokens> texts,
                          std::int64_t vocabulary, std::int32_t first_sentence) {
  std::vector<Tokens> inputs, labels;
  for (const Tokens& text : texts) {
    if (text.size() < 2) throw Error("a text of less than two tokens has none to be said.");
    inputs.emplace_back(text.begin(), text.end() - 1);
    labels.emplace_back(text.begin() + 1, text.end());
  }
  TextBatch batch;
  batch.inputs = make_token_batch(context, inputs, vocabulary, first_sentence);
  batch.labels = flat_ids(context, labels, batch.inputs.rows, vocabulary);
  return batch;
}

MaskedBatch make_masked_batch(ContextBase& context, std::span<const MaskedText> texts,
                              std::int64_t vocabulary, std::int32_t first_sentence) {
  std::vector<Tokens> inputs, labels;
  std::vector<std::int32_t> counts, places, indices(texts.size());
  std::iota(indices.begin(), indices.end(), first_sentence);
  std::int32_t first_row = 0;
  for (const MaskedText& text : texts) {
    const auto length = static_cast<std::int32_t>(text.inputs.size());
    if (text.positions.size() != text.labels.size()) {
      throw Error(std::to_string(text.positions.size()) + " masked tokens have " +
                  std::to_string(text.labels.size()) + " labels.");
    }
    for (const std::int32_t position : text.positions) {
      if (position < 0 || position >= length) {
        throw Error("a text of " + std::to_string(length) + " tokens has none at " +
                    std::to_string(position) + " that could be masked.");
      }
      places.push_back(first_row + position);
    }
    inputs.push_back(text.inputs);
    labels.push_back(text.labels);
    counts.push_back(static_cast<std::int32_t>(text.positions.size()));
    first_row += length;
  }
  MaskedBatch batch;
  batch.inputs = make_token_batch(context, inputs, vocabulary, first_sentence);
  batch.masked = make_ragged(context, counts, indices);
  places.resize(static_cast<std::size_t>(batch.masked.capacity), 0);
  batch.places = from_host(context, places, {batch.masked.capacity});
  batch.labels = flat_ids(context, labels, batch.masked, vocabulary);
  return batch;
}

PairBatch make_pair_batch(ContextBase& context, std::span<const Tokens> sources,
                          std::span<const Tokens> targets, const Vocabularies& vocabularies,
                          const PairBatchOptions& options) {
  if (sources.size() != targets.size()) {
    throw Error(std::to_string(sources.size()) + " sources cannot be paired with " +
                std::to_string(targets.size()) + " targets.");
  }
  std::vector<Tokens> inputs, labels;
  for (const Tokens& target : targets) {
    Tokens input{options.special.begin};
    input.insert(input.end(), target.begin(), target.end());
    Tokens label(target);
    label.push_back(options.special.end);
    inputs.push_back(std::move(input));
    labels.push_back(std::move(label));
  }
  PairBatch batch;
  batch.source = make_token_batch(context, sources, vocabularies.source, options.first_sentence);
  batch.target = make_token_batch(context, inputs, vocabularies.target, options.first_sentence);
  batch.labels = flat_ids(context, labels, batch.target.rows, vocabularies.target);
  return batch;
}

}  // namespace nunchi
