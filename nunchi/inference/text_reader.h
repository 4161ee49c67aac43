// Lines for models that read whole texts: what filling in, embedding and classifying have in
// common.
#pragma once

#include <span>
#include <vector>

#include "nunchi/inference/source_line.h"
#include "nunchi/models/format/tokenizers.h"

namespace nunchi {

struct ReaderOptions {
  std::int64_t max_length = 1024;    // tokens of a line, <s> and </s> included; more are cut
  std::int64_t batch_tokens = 4096;  // that are read at once, about
};

// Used by one thread at a time. Model and tokenizers outlive it.
class TextReader {
 public:
  // Throws Error when the tokenizer does not fit the model.
  TextReader(const Model& model, const Tokenizers& tokenizers, const ReaderOptions& options);

  // <s> line </s>; nothing for a line without words.
  Tokens tokens_of(const SourceLine& line);
  // The same of a line whose tokens are known already.
  Tokens enclosed_line(const SourceLine& line, const Tokens& tokens);

  // Numbers of texts that are read together: of similar length, longest first. Those without tokens
  // are in none.
  std::vector<std::vector<std::size_t>> batches_of(std::span<const Tokens> texts) const;

  const Tokenizer& tokenizer() const { return tokenizer_; }
  // Tokens that are read of a line, <s> and </s> included.
  std::int64_t longest() const { return options_.max_length; }
  // Of all lines so far.
  const LineCounts& counts() const { return counts_; }

 private:
  const Tokenizer& tokenizer_;
  ReaderOptions options_;
  LineCounts counts_;
};

}  // namespace nunchi
