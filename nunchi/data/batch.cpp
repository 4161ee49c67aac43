#include "nunchi/data/batch.h"

#include <numeric>
#include <string>
#include <utility>

#include "nunchi/base/error.h"
#include "nunchi/ops/tensors.h"

namespace nunchi {

PairBatch make_pair_batch(Source source, std::span<const Tokens> targets, std::int64_t vocabulary,
                          const PairBatchOptions& options) {
  const std::int64_t sources = source.rows().sentences;
  if (sources != std::ssize(targets)) {
    throw Error(std::to_string(sources) + " sources cannot be paired with " +
                std::to_string(targets.size()) + " targets.");
  }
  ContextBase& context = source.context();
  std::vector<Tokens> inputs, labels;
  for (const Tokens& target : targets) {
    Tokens& input = inputs.emplace_back(Tokens{options.tokens.start});
    input.insert(input.end(), target.begin(), target.end());
    labels.emplace_back(target).push_back(options.tokens.end);
  }
  PairBatch batch;
  batch.source = std::move(source);
  batch.target = make_token_batch(context, inputs, vocabulary, options.first_sentence);
  batch.labels = make_token_ids(context, labels, batch.target.rows, vocabulary);
  return batch;
}

TextBatch make_text_batch(ContextBase& context, std::span<const Tokens> texts,
                          std::int64_t vocabulary, std::int32_t first_sentence) {
  std::vector<Tokens> inputs, labels;
  for (const Tokens& text : texts) {
    if (text.size() < 2) throw Error("a text of fewer than two tokens has no token to predict.");
    inputs.emplace_back(text.begin(), text.end() - 1);
    labels.emplace_back(text.begin() + 1, text.end());
  }
  TextBatch batch;
  batch.inputs = make_token_batch(context, inputs, vocabulary, first_sentence);
  batch.labels = make_token_ids(context, labels, batch.inputs.rows, vocabulary);
  return batch;
}

MaskedBatch make_masked_batch(ContextBase& context, std::span<const MaskedText> texts,
                              std::int64_t vocabulary, std::int32_t first_sentence) {
  std::vector<Tokens> inputs, labels;
  std::vector<std::int32_t> counts, masked_rows, indices(texts.size());
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
        throw Error("a text of " + std::to_string(length) + " tokens has no token at position " +
                    std::to_string(position) + " to mask.");
      }
      masked_rows.push_back(first_row + position);
    }
    inputs.push_back(text.inputs);
    labels.push_back(text.labels);
    counts.push_back(static_cast<std::int32_t>(text.positions.size()));
    first_row += length;
  }
  MaskedBatch batch;
  batch.inputs = make_token_batch(context, inputs, vocabulary, first_sentence);
  batch.masked = make_ragged(context, counts, indices);
  masked_rows.resize(static_cast<std::size_t>(batch.masked.capacity), 0);
  batch.masked_rows = from_host(context, masked_rows, {batch.masked.capacity});
  batch.labels = make_token_ids(context, labels, batch.masked, vocabulary);
  return batch;
}

}  // namespace nunchi
