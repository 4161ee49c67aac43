#include "nunchi/inference/embedder.h"

#include <cmath>

#include "nunchi/ops/tensors.h"

namespace nunchi {

Embedder::Embedder(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
                   const EmbedderOptions& options)
    : model_(as_embedding_model(model)),
      context_(context),
      reader_(model, tokenizers, options.reader),
      options_(options) {}

std::vector<std::vector<float>> Embedder::embed(std::span<const SourceLine> lines) {
  std::vector<Tokens> texts;
  for (const SourceLine& line : lines) texts.push_back(reader_.tokens_of(line));
  std::vector<std::vector<float>> vectors(
      lines.size(), std::vector<float>(static_cast<std::size_t>(model_.width())));
  for (const std::vector<std::size_t>& batch : reader_.batches_of(texts)) {
    std::vector<Tokens> batch_texts;
    batch_texts.reserve(batch.size());
    for (const std::size_t line : batch) batch_texts.push_back(texts[line]);
    const TokenBatch tokens = make_token_batch(context_, batch_texts, model_.vocabulary());
    const std::vector<double> hidden = to_host_f64(model_.hidden(tokens).value());
    std::span<const double> rest = hidden;
    for (const std::size_t line : batch) {
      const std::size_t length = texts[line].size();
      vectors[line] = pool(rest, length);
      rest = rest.subspan(length * vectors[line].size());
    }
  }
  return vectors;
}

// Pools the first `length` rows: <s>, the line and </s>.
std::vector<float> Embedder::pool(std::span<const double> rows, std::size_t length) const {
  const auto width = static_cast<std::size_t>(model_.width());
  const bool mean = options_.pooling == Pooling::mean;
  const std::size_t first = mean ? 1 : 0, count = mean ? length - 2 : 1;
  std::vector<double> sum(width);
  for (std::size_t row = first; row < first + count; ++row) {
    for (std::size_t i = 0; i < width; ++i) sum[i] += rows[row * width + i];
  }
  double scale = 1 / static_cast<double>(count), squares = 0;
  for (const double value : sum) squares += value * value;
  if (options_.normalize && squares > 0) scale = 1 / std::sqrt(squares);
  std::vector<float> vector;
  vector.reserve(sum.size());
  for (const double value : sum) vector.push_back(static_cast<float>(scale * value));
  return vector;
}

}  // namespace nunchi
