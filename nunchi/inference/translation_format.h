// Formats translations and scores as lines of text or as JSON.
//
// The keys of the JSON objects are fixed: programs rely on them.
#pragma once

#include <cstdint>
#include <string>

#include "nunchi/inference/scorer.h"
#include "nunchi/inference/translator.h"

namespace nunchi {

enum class Alignment : std::uint8_t {
  none,
  hard,  // "0-0 1-2": pairs of source word index and target word index
  soft,  // for each target word and </s>, the weights of all source words, separated by commas
};

struct TranslationFormat {
  bool n_best = false;                    // all translations, each with the number of its line
  bool word_scores = false;               // the log-probability of each word and of </s>
  Alignment alignment = Alignment::none;  // needs Translation::attention or PairScore::attention
};

// The output lines for one source line, each with its line break: the text of the best translation;
// with features `text ||| features ||| score`; for n-best `id ||| text ||| features ||| score`.
std::string to_text(const TranslationFormat& format, std::int64_t number,
                    const Translations& translations);

// One JSON object in one line, with its line break:
//   id               the number of the line
//   unknown          the share of the source's tokens that the model does not know, 0 to 1
//   text, score, log_probability
//   tokens, token_scores, words, word_scores     with word_scores; the end token comes last
//   alignment        hard: [[source, target], …]; soft: a list of weights for each target word
//   n_best           with n_best: a list of objects with the keys from `text` on, which the outer
//                    object then does not have
std::string to_json(const TranslationFormat& format, std::int64_t number,
                    const Translations& translations);

// The score of a pair or of a line of text: the log-probability and then, separated by tabs, the
// alignment and each piece with its log-probability, as far as `format` asks for them.
std::string to_text(const TranslationFormat& format, const PairScore& score);

// One JSON object with the keys id, unknown, log_probability, token_count (of the target, the end
// token included), cut (whether a text was too long), and by `format` tokens, token_scores, words,
// word_scores, alignment as above.
std::string to_json(const TranslationFormat& format, std::int64_t number, const PairScore& score);

}  // namespace nunchi
