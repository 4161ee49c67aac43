// Tokenises lines for models that read whole texts. Shared by Filler, Embedder and LineClassifier.
#pragma once

#include <span>
#include <vector>

#include "nunchi/inference/source_line.h"
#include "nunchi/models/format/tokenizers.h"

namespace nunchi {

struct ReaderOptions {
  std::int64_t max_length = 1024;  // tokens of a line, <s> and </s> included; longer lines are cut
  std::int64_t batch_tokens = 4096;  // tokens of a batch, approximately
};

// Used by one thread at a time. Model and tokenizers outlive it.
class TextReader {
 public:
  // Throws Error when the tokenizer does not fit the model.
  TextReader(const Model& model, const Tokenizers& tokenizers, const ReaderOptions& options);

  // <s> line </s>; empty for a line without words.
  Tokens tokens_of(const SourceLine& line);
  // The same for a line that is already tokenised.
  Tokens enclose(const SourceLine& line, const Tokens& tokens);

  // Indices of the texts of each batch; see length_batches().
  std::vector<std::vector<std::size_t>> batches_of(std::span<const Tokens> texts) const;

  const Tokenizer& tokenizer() const { return tokenizer_; }
  // Maximum tokens of a line, <s> and </s> included.
  std::int64_t max_length() const { return options_.max_length; }
  // Totals over all calls.
  const LineCounts& counts() const { return counts_; }

 private:
  const Tokenizer& tokenizer_;
  ReaderOptions options_;
  LineCounts counts_;
};

}  // namespace nunchi
