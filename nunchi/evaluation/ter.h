// TER (Snover et al. 2006): the edits that turn a translation into its reference, in percent of the
// reference's words. Equal to sacreBLEU's in every digit; tercom_edits.h says how edits are
// counted.
//
// Lines are UTF-8; white space at their ends is ignored, invalid bytes are read as U+FFFD. With
// several references, the edits are those to the closest one and the length is the mean of all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nunchi/evaluation/signature.h"
#include "nunchi/evaluation/statistics.h"
#include "nunchi/evaluation/tokenizer_tercom.h"

namespace nunchi::evaluation {

struct TerOptions {
  TercomOptions tokenizer;
  bool case_sensitive = false;
};

struct TerScore {
  double score = 0;  // 0 or more; lower is better
  std::int64_t edits = 0;
  double reference_length = 0;  // words; the mean of the references, summed over the lines
};

// The words that TER counts in a line.
std::vector<std::string> ter_words(std::string_view line, const TerOptions& options);

// The score of a corpus. Throws Error where check_corpus() does.
TerScore corpus_ter(std::span<const std::string> hypotheses, std::span<const Lines> references,
                    const TerOptions& options = {});
inline TerScore corpus_ter(std::span<const std::string> hypotheses, const Lines& reference,
                           const TerOptions& options = {}) {
  return corpus_ter(hypotheses, std::span(&reference, 1), options);
}

// corpus_ter in two steps: the counts of each line, and their score. The mean reference lengths of
// the lines are added as floating-point numbers in the order of the lines, as in sacreBLEU: the
// score of their sum, by the second function, may differ in the last digit.
Statistics ter_statistics(std::span<const std::string> hypotheses,
                          std::span<const Lines> references, const TerOptions& options);
TerScore ter_of(const Statistics& statistics, std::size_t references);
TerScore ter_of(std::span<const std::int64_t> sums, std::size_t references);

// E.g. "nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:…".
std::string signature(const TerOptions& options, const Setting& setting);

}  // namespace nunchi::evaluation
