// Formats translations as lines of text.
#pragma once

#include <cstdint>
#include <string>

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
  Alignment alignment = Alignment::none;  // needs Translation::attention
};

// The output lines for one source line, each with its line break: the text of the best translation;
// with features `text ||| features ||| score`; for n-best `id ||| text ||| features ||| score`.
std::string to_text(const TranslationFormat& format, std::int64_t number,
                    const Translations& translations);

}  // namespace nunchi
