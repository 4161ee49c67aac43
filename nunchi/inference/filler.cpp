#include "nunchi/inference/filler.h"

#include <algorithm>
#include <cmath>

#include "nunchi/ops/decode/top_tokens.h"
#include "nunchi/ops/gather_rows.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/text/mask_symbol.h"
#include "nunchi/text/one_line.h"

namespace nunchi {
namespace {

constexpr std::string_view kSpace = "▁";

// Replaces every known spelling of the mask by the tokenizer's `symbol`.
std::string with_symbol(std::string text, const std::string& symbol) {
  for (const std::string_view known : kMaskSymbols) {
    if (known == symbol) continue;
    for (std::size_t at = text.find(known); at != text.npos;
         at = text.find(known, at + symbol.size())) {
      text.replace(at, known.size(), symbol);
    }
  }
  return text;
}

}  // namespace

// Drops the space piece before a mask: in training a mask includes the space.
MaskedTokens tokens_with_masks(const Tokenizer& tokenizer, std::int32_t mask,
                               const std::string& text, std::size_t max_tokens) {
  Tokens tokens, rest;
  for (const std::int32_t token : tokenizer.encode(with_symbol(text, tokenizer.piece(mask)))) {
    if (!rest.empty() || tokens.size() == max_tokens) {
      rest.push_back(token);
      continue;
    }
    const bool after_space =
        token == mask && !tokens.empty() && tokenizer.piece(tokens.back()) == kSpace;
    if (after_space) tokens.pop_back();
    tokens.push_back(token);
  }
  return {std::move(tokens), std::move(rest)};
}

Filler::Filler(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
               const FillerOptions& options)
    : model_(as_masked_language_model(model)),
      context_(context),
      reader_(model, tokenizers, options.reader),
      top_(std::clamp<std::int64_t>(options.top, 1, model_.vocabulary())),
      mask_(mask_token(tokenizers.target())) {}

Filler::Line Filler::tokenize(const SourceLine& line) {
  const auto max_tokens = static_cast<std::size_t>(reader_.max_length() - 2);
  auto [tokens, rest] = tokens_with_masks(reader_.tokenizer(), mask_, line.text, max_tokens);
  const SourceLine source{.text = line.text, .cut = line.cut || !rest.empty()};
  return {reader_.enclose(source, tokens), std::move(rest)};
}

std::vector<FilledLine> Filler::fill(std::span<const SourceLine> lines) {
  std::vector<Line> tokenized;
  std::vector<Tokens> texts;
  std::vector<FilledLine> filled;
  for (const SourceLine& source : lines) {
    const Line& line = tokenized.emplace_back(tokenize(source));
    filled.push_back(
        {.text = source.text, .masks = {}, .unread_masks = std::ranges::count(line.rest, mask_)});
    const bool has_mask = std::ranges::find(line.tokens, mask_) != line.tokens.end();
    if (!line.tokens.empty() && !has_mask && filled.back().unread_masks == 0) ++without_mask_;
    texts.push_back(has_mask ? line.tokens : Tokens());
  }
  for (const std::vector<std::size_t>& batch : reader_.batches_of(texts)) {
    fill_batch(batch, tokenized, filled);
  }
  return filled;
}

FilledLine Filler::fill(const std::string& text) {
  return fill(std::vector<SourceLine>{{.text = text}})[0];
}

void Filler::fill_batch(std::span<const std::size_t> batch, std::span<const Line> lines,
                        std::vector<FilledLine>& filled) const {
  std::vector<MaskedText> masked;
  for (const std::size_t line : batch) {
    MaskedText& text = masked.emplace_back(MaskedText{.inputs = lines[line].tokens});
    for (std::size_t i = 0; i < text.inputs.size(); ++i) {
      if (text.inputs[i] == mask_) text.positions.push_back(static_cast<std::int32_t>(i));
    }
    text.labels.assign(text.positions.size(), mask_);
  }
  const MaskedBatch rows = make_masked_batch(context_, masked, model_.vocabulary());
  const Variable hidden = gather_rows(model_.hidden(rows.inputs), rows.masked, rows.masked_rows);
  const TopTokens top = top_tokens(model_.scores(hidden, rows.masked), top_);
  const std::vector<std::int32_t> ids = to_host<std::int32_t>(top.ids);
  const std::vector<double> log_probs = to_host_f64(top.log_probs);

  const Tokenizer& tokenizer = reader_.tokenizer();
  std::size_t next = 0;  // candidate
  for (std::size_t i = 0; i < batch.size(); ++i) {
    FilledLine& line = filled[batch[i]];
    Tokens tokens = masked[i].inputs;
    for (const std::int32_t position : masked[i].positions) {
      tokens[static_cast<std::size_t>(position)] = ids[next];
      std::vector<Candidate>& candidates = line.masks.emplace_back();
      for (std::int64_t c = 0; c < top_; ++c, ++next) {
        candidates.push_back({.piece = tokenizer.piece(ids[next]),
                              .text = in_one_line(tokenizer.decode(std::span(&ids[next], 1))),
                              .probability = std::exp(log_probs[next])});
      }
    }
    const Tokens& rest = lines[batch[i]].rest;
    tokens.insert(tokens.end(), rest.begin(), rest.end());
    line.text = in_one_line(tokenizer.decode(tokens));
  }
}

}  // namespace nunchi
