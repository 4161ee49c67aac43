// chrF (Popović 2015): the F-score of character n-grams, and chrF++ (Popović 2017), which adds
// word n-grams. Equal to sacreBLEU's in every digit.
//
// Lines are UTF-8; white space is ignored, invalid bytes are read as U+FFFD. With several
// references a line is scored against the best of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "nunchi/evaluation/signature.h"
#include "nunchi/evaluation/statistics.h"

namespace nunchi::evaluation {

struct ChrfOptions {
  int character_order = 6;  // at least 1
  int word_order = 0;       // 2 makes it chrF++
  int beta = 2;             // weight of recall against precision
  bool lowercase = false;
};

// The score of a corpus, 0 to 100. Throws Error where check_corpus() does.
double corpus_chrf(std::span<const std::string> hypotheses, std::span<const Lines> references,
                   const ChrfOptions& options = {});
inline double corpus_chrf(std::span<const std::string> hypotheses, const Lines& reference,
                          const ChrfOptions& options = {}) {
  return corpus_chrf(hypotheses, std::span(&reference, 1), options);
}

// corpus_chrf in two steps: the counts of each line, and the score of their sum.
Statistics chrf_statistics(std::span<const std::string> hypotheses,
                           std::span<const Lines> references, const ChrfOptions& options);
double chrf_of(std::span<const std::int64_t> sums, const ChrfOptions& options);

// "chrF2" or, with words, "chrF2++".
std::string name_of(const ChrfOptions& options);
// E.g. "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:…".
std::string signature(const ChrfOptions& options, const Setting& setting);

}  // namespace nunchi::evaluation
