// A line of input text for Translator, Filler, Embedder and LineClassifier.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nunchi {

struct SourceLine {
  std::string text;
  std::string prefix;       // the translation must begin with it
  std::int64_t number = 0;  // selects the random draws when sampling
  bool cut = false;         // the reader already dropped the end of the line; counts as cut
  // Texts that the translation must contain, each as often as it occurs here.
  std::vector<std::string> terms = {};
};

// A line with at least this share of unknown tokens (fallback_share()) is unlike the text that the
// tokenizer was learned from: in another script, for example, or with words that the model cannot
// know. One unknown character in a sentence of some length stays below.
inline constexpr double kUnknownLimit = 0.05;

// How many lines could not be used unchanged; a line counts at most once in each.
struct LineCounts {
  std::int64_t empty = 0;     // no words: an empty result
  std::int64_t repaired = 0;  // invalid UTF-8 replaced by U+FFFD
  std::int64_t cut = 0;       // too long: only the beginning was used
  std::int64_t markup = 0;    // inline terms that cannot be read: used as text
  std::int64_t terms = 0;     // with terms that were left out: see kMaxRequiredPhrases
  std::int64_t unknown = 0;   // used, but with kUnknownLimit or more unknown tokens
  std::int64_t unlikely = 0;  // translated, but see Translation::unlikely
};

}  // namespace nunchi
