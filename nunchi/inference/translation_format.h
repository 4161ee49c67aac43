// Translations as lines of text.
#pragma once

#include <cstdint>
#include <string>

#include "nunchi/inference/translator.h"

namespace nunchi {

enum class Alignment : std::uint8_t {
  none,
  hard,  // "0-0 1-2": source word, target word
  soft,  // for each target word, and </s>, its weights over the source words, separated by commas
};

struct TranslationFormat {
  bool n_best = false;                    // all of them, each with its line's number
  bool word_scores = false;               // the log-probability of each word, and of </s>
  Alignment alignment = Alignment::none;  // needs translations with their attention
};

// The lines for one source line, each with its end: the best translation alone, or with features
// `text ||| features ||| score`, or for n-best `id ||| text ||| features ||| score`.
std::string to_text(const TranslationFormat& format, std::int64_t number,
                    const Translations& translations);

}  // namespace nunchi
