// Embedding: one vector for each line, pooled from the hidden states of its tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nunchi/inference/text_reader.h"

namespace nunchi {

enum class Pooling : std::uint8_t {
  mean,   // over the line's tokens, without <s> and </s>
  first,  // the hidden state of <s>
};

struct EmbedderOptions {
  ReaderOptions reader;
  Pooling pooling = Pooling::mean;
  bool normalize = false;  // scale vectors to length 1
};

// Used by one thread at a time. Context, model and tokenizers outlive it.
class Embedder {
 public:
  // Throws Error when the model cannot embed or the tokenizer does not fit it.
  Embedder(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
           const EmbedderOptions& options);

  // A vector of the model's width for each line, in order. A line's vector does not depend on the
  // other lines. A line without words gets zeros.
  std::vector<std::vector<float>> embed(std::span<const SourceLine> lines);

  // Totals over all calls.
  const LineCounts& counts() const { return reader_.counts(); }

 private:
  std::vector<float> pool(std::span<const double> rows, std::size_t length) const;

  const MaskedLanguageModel& model_;
  ContextBase& context_;
  TextReader reader_;
  EmbedderOptions options_;
};

}  // namespace nunchi
