#include "nunchi/inference/line_classifier.h"

#include <cmath>

#include "nunchi/ops/decode/top_tokens.h"
#include "nunchi/ops/tensors.h"

namespace nunchi {

LineClassifier::LineClassifier(ContextBase& context, const Model& model,
                               const Tokenizers& tokenizers, const ReaderOptions& options)
    : model_(as_classifier(model)),
      encoder_(as_masked_language_model(model)),
      context_(context),
      reader_(model, tokenizers, options) {}

std::vector<std::vector<LabelProbability>> LineClassifier::classify(
    std::span<const SourceLine> lines) {
  std::vector<Tokens> texts;
  for (const SourceLine& line : lines) texts.push_back(reader_.tokens_of(line));
  std::vector<std::vector<LabelProbability>> classes(lines.size());
  const std::vector<std::string>& labels = model_.labels();
  for (const std::vector<std::size_t>& batch : reader_.batches_of(texts)) {
    std::vector<Tokens> together;
    together.reserve(batch.size());
    for (const std::size_t line : batch) together.push_back(texts[line]);
    const TokenBatch tokens = make_token_batch(context_, together, encoder_.vocabulary());
    const Ragged each = make_ragged(context_, std::vector<std::int32_t>(batch.size(), 1));
    const Tensor scores = model_.label_scores(model_.summary(tokens, each));
    const TopTokens top = top_tokens(scores, static_cast<std::int64_t>(labels.size()));
    const std::vector<std::int32_t> ids = to_host<std::int32_t>(top.ids);
    const std::vector<double> log_probs = to_host_f64(top.log_probs);
    std::size_t at = 0;
    for (const std::size_t line : batch) {
      for (std::size_t i = 0; i < labels.size(); ++i, ++at) {
        classes[line].push_back(
            {labels[static_cast<std::size_t>(ids[at])], std::exp(log_probs[at])});
      }
    }
  }
  return classes;
}

}  // namespace nunchi
