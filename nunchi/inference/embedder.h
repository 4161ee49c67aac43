// A vector for a line: what a model makes of its tokens, in one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nunchi/inference/text_reader.h"

namespace nunchi {

enum class Pooling : std::uint8_t {
  mean,   // of the line's own tokens, without <s> and </s>
  first,  // what <s> has become
};

struct EmbedderOptions {
  ReaderOptions reader;
  Pooling pooling = Pooling::mean;
  bool normalize = false;  // to length 1
};

// Used by one thread at a time. Context, model and tokenizers outlive it.
class Embedder {
 public:
  // Throws Error when the model does not read texts or the tokenizer does not fit it.
  Embedder(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
           const EmbedderOptions& options);

  // A vector of the model's width for each line, in their order; it does not depend on the others.
  // Zeros for a line without words.
  std::vector<std::vector<float>> embed(std::span<const SourceLine> lines);

  // Of all lines so far.
  const LineCounts& counts() const { return reader_.counts(); }

 private:
  std::vector<float> pooled(std::span<const double> rows, std::size_t length) const;

  const MaskedLanguageModel& model_;
  ContextBase& context_;
  TextReader reader_;
  EmbedderOptions options_;
};

}  // namespace nunchi
