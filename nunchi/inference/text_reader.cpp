#include "nunchi/inference/text_reader.h"

#include <algorithm>

#include "nunchi/inference/length_batches.h"
#include "nunchi/text/unicode.h"

namespace nunchi {

TextReader::TextReader(const Model& model, const Tokenizers& tokenizers,
                       const ReaderOptions& options)
    : tokenizer_(tokenizers.target()), options_(options) {
  tokenizers.check_fit(model, "the reader");
  options_.max_length = std::min(options.max_length, as_masked_language_model(model).max_length());
}

Tokens TextReader::tokens_of(const SourceLine& line) {
  return enclose(line, tokenizer_.encode(line.text));
}

Tokens TextReader::enclose(const SourceLine& line, const Tokens& tokens) {
  counts_.repaired += is_valid_utf8(line.text) ? 0 : 1;
  const bool is_long = static_cast<std::int64_t>(tokens.size()) + 2 > options_.max_length;
  counts_.cut += line.cut || is_long ? 1 : 0;
  counts_.empty += tokens.empty() ? 1 : 0;
  counts_.unknown += fallback_share(tokenizer_, tokens) >= kUnknownLimit ? 1 : 0;
  return tokens.empty() ? Tokens() : enclosed(tokens, tokenizer_.special(), options_.max_length);
}

std::vector<std::vector<std::size_t>> TextReader::batches_of(std::span<const Tokens> texts) const {
  std::vector<std::int64_t> lengths;
  for (const Tokens& text : texts) lengths.push_back(std::ssize(text));
  return length_batches(lengths, {.tokens = options_.batch_tokens});
}

}  // namespace nunchi
