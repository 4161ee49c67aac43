#include "nunchi/inference/translator.h"

#include <algorithm>

#include "nunchi/base/error.h"
#include "nunchi/inference/length_batches.h"
#include "nunchi/text/one_line.h"
#include "nunchi/text/unicode.h"

namespace nunchi {

Translator::Translator(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
                       const TranslatorOptions& options)
    : model_(as_translation_model(model)),
      context_(context),
      tokenizers_(tokenizers),
      options_(options),
      searcher_(model_, options.search) {
  tokenizers.check_fit(model, "the translator");
  options_.max_source_length = std::min(options.max_source_length, model_.max_length());
}

// Lines that are translated together.
struct Translator::Batch {
  std::vector<std::size_t> lines;  // indices into the lines of the call
  std::vector<Tokens> sources;     // </s> included
  std::vector<Tokens> prefixes;
  std::vector<std::int64_t> numbers;
};

// One line as tokens.
struct Translator::LineTokens {
  Tokens source;  // </s> included; empty for a line without words
  Tokens prefix;
};

std::vector<Translations> Translator::translate(std::span<const SourceLine> lines) {
  std::vector<Translations> translations(lines.size(), Translations(1));
  for (const Batch& batch : batches_of(lines)) {
    const TokenBatch source =
        make_token_batch(context_, batch.sources, model_.input_sizes().source_vocabulary);
    const std::vector<Hypotheses> found = searcher_({.source = source,
                                                     .prefixes = batch.prefixes,
                                                     .numbers = batch.numbers,
                                                     .tokens = tokenizers_.decoder()});
    for (std::size_t i = 0; i < found.size(); ++i) {
      translations[batch.lines[i]] = to_text(found[i]);
      if (options_.alignment) align(batch.sources[i], found[i], translations[batch.lines[i]]);
      const Tokens& tokens = batch.sources[i];
      const double unknown =
          fallback_share(tokenizers_.source(), std::span(tokens).first(tokens.size() - 1));
      for (Translation& translation : translations[batch.lines[i]]) {
        translation.unknown_share = unknown;
      }
      counts_.unknown += unknown >= kUnknownLimit ? 1 : 0;
    }
  }
  return translations;
}

Translation Translator::translate(const std::string& text) {
  return translate(std::vector<SourceLine>{{.text = text}})[0][0];
}

std::vector<Translator::Batch> Translator::batches_of(std::span<const SourceLine> lines) {
  std::vector<LineTokens> tokens_of_line;
  std::vector<std::int64_t> lengths;
  for (const SourceLine& line : lines) {
    tokens_of_line.push_back(tokens_of(line));
    lengths.push_back(std::ssize(tokens_of_line.back().source));
  }
  std::vector<Batch> batches;
  for (std::vector<std::size_t>& indices :
       length_batches(lengths, {options_.batch_tokens, options_.batch_sentences})) {
    Batch& batch = batches.emplace_back();
    for (const std::size_t line : indices) {
      batch.sources.push_back(std::move(tokens_of_line[line].source));
      batch.prefixes.push_back(std::move(tokens_of_line[line].prefix));
      batch.numbers.push_back(lines[line].number);
    }
    batch.lines = std::move(indices);
  }
  return batches;
}

Translator::LineTokens Translator::tokens_of(const SourceLine& line) {
  LineTokens tokens{.source = tokenizers_.source().encode(line.text)};
  if (!is_valid_utf8(line.text) || !is_valid_utf8(line.prefix)) ++counts_.repaired;
  if (tokens.source.empty()) {
    ++counts_.empty;
    counts_.cut += line.cut ? 1 : 0;
    return tokens;
  }
  tokens.prefix = tokenizers_.target().encode(line.prefix);
  bool cut = line.cut;
  const auto shorten = [&](Tokens& side, std::int64_t reserved) {
    const auto max_tokens =
        static_cast<std::size_t>(std::max<std::int64_t>(0, options_.max_source_length - reserved));
    if (side.size() <= max_tokens) return;
    side.resize(max_tokens);
    cut = true;
  };
  shorten(tokens.source, 1);  // </s>
  shorten(tokens.prefix, 2);  // <s> and at least one token that is generated
  counts_.cut += cut ? 1 : 0;
  tokens.source.push_back(tokenizers_.source().special().end);
  return tokens;
}

Translations Translator::to_text(const Hypotheses& found) const {
  const Tokenizer& tokenizer = tokenizers_.target();
  Translations translations;
  for (const Hypothesis& hypothesis : found) {
    Translation& translation = translations.emplace_back();
    translation.text = in_one_line(tokenizer.decode(hypothesis.tokens));
    translation.score = hypothesis.score;
    translation.log_probability = hypothesis.log_probability;
    translation.token_scores = hypothesis.token_scores;
    for (const std::int32_t id : hypothesis.tokens) {
      translation.pieces.push_back(tokenizer.piece(id));
    }
    if (hypothesis.ended_by_eos) {
      translation.pieces.push_back(tokenizer.piece(tokenizers_.decoder().end));
      translation.last_piece = LastPiece::end_token;
    }
  }
  return translations;
}

void Translator::align(const Tokens& source, const Hypotheses& found,
                       Translations& translations) const {
  std::vector<std::string> pieces;
  for (const std::int32_t id : source) pieces.push_back(tokenizers_.source().piece(id));
  std::vector<Tokens> targets;
  for (const Hypothesis& hypothesis : found) targets.push_back(hypothesis.tokens);
  const std::vector<Tokens> sources(found.size(), source);
  const auto weights = cross_attention(
      model_, make_token_batch(context_, sources, model_.input_sizes().source_vocabulary), targets,
      tokenizers_.decoder());
  for (std::size_t i = 0; i < found.size(); ++i) {
    AttentionMatrix& attention = translations[i].attention;
    attention = {.sources = pieces,
                 .targets = translations[i].pieces,
                 .weights = weights[i],
                 .last_source = LastPiece::end_token,
                 .last_target = translations[i].last_piece};
    // A translation that was cut at its maximum length has no piece, and so no row, for its end.
    attention.weights.resize(attention.targets.size() * pieces.size());
  }
}

}  // namespace nunchi
