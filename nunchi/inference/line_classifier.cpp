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
    std::vector<Tokens> batch_texts;
    batch_texts.reserve(batch.size());
    for (const std::size_t line : batch) batch_texts.push_back(texts[line]);
    const TokenBatch tokens = make_token_batch(context_, batch_texts, encoder_.vocabulary());
    const Ragged row_per_text = make_ragged(context_, std::vector<std::int32_t>(batch.size(), 1));
    const Tensor scores = model_.label_scores(model_.summary(tokens, row_per_text));
    const TopTokens top = top_tokens(scores, static_cast<std::int64_t>(labels.size()));
    const std::vector<std::int32_t> ids = to_host<std::int32_t>(top.ids);
    const std::vector<double> log_probs = to_host_f64(top.log_probs);
    std::size_t next = 0;
    for (const std::size_t line : batch) {
      for (std::size_t i = 0; i < labels.size(); ++i, ++next) {
        classes[line].push_back(
            {labels[static_cast<std::size_t>(ids[next])], std::exp(log_probs[next])});
      }
    }
  }
  return classes;
}

}  // namespace nunchi
