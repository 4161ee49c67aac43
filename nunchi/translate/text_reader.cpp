#include "nunchi/translate/text_reader.h"

#include <algorithm>
#include <numeric>

#include "nunchi/models/folder.h"
#include "nunchi/text/unicode.h"

namespace nunchi {

ReaderFolder::ReaderFolder(ContextBase& context, const std::filesystem::path& folder)
    : model_(load_model(folder, context)), tokenizers_(load_tokenizers(folder)) {
  tokenizers_.check_fit(as_masked_language_model(*model_), folder.string());
}

TextReader::TextReader(const MaskedLanguageModel& model, const Tokenizers& tokenizers,
                       const ReaderOptions& options)
    : tokenizer_(tokenizers.target()), options_(options) {
  tokenizers.check_fit(model, "the reader");
  options_.max_length = std::min(options.max_length, model.max_length());
}

Tokens TextReader::tokens_of(const SourceLine& line) {
  return enclosed_line(line, tokenizer_.encode(line.text));
}

Tokens TextReader::enclosed_line(const SourceLine& line, const Tokens& tokens) {
  counts_.repaired += is_valid_utf8(line.text) ? 0 : 1;
  const bool is_long = static_cast<std::int64_t>(tokens.size()) + 2 > options_.max_length;
  counts_.cut += line.cut || is_long ? 1 : 0;
  counts_.empty += tokens.empty() ? 1 : 0;
  return tokens.empty() ? Tokens() : enclosed(tokens, tokenizer_.special(), options_.max_length);
}

std::vector<std::vector<std::size_t>> TextReader::batches_of(std::span<const Tokens> texts) const {
  std::vector<std::size_t> order(texts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return texts[i].size(); });
  std::vector<std::vector<std::size_t>> batches;
  std::int64_t tokens = 0;
  for (const std::size_t i : order) {
    const auto length = static_cast<std::int64_t>(texts[i].size());
    if (length == 0) break;  // as are all after it
    if (batches.empty() || tokens + length > options_.batch_tokens) {
      batches.emplace_back();
      tokens = 0;
    }
    batches.back().push_back(i);
    tokens += length;
  }
  return batches;
}

}  // namespace nunchi
