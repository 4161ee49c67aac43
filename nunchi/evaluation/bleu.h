// BLEU (Papineni et al. 2002), equal to sacreBLEU's in every digit: n-grams up to 4, exponential
// smoothing of orders without a match, the reference length closest to that of the hypothesis.
//
// Lines are UTF-8; white space at their end is ignored, invalid bytes are read as U+FFFD.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nunchi/evaluation/mecab.h"
#include "nunchi/evaluation/signature.h"
#include "nunchi/evaluation/statistics.h"

namespace nunchi::evaluation {

inline constexpr std::size_t kBleuOrder = 4;

enum class BleuTokenizer {
  v13a,           // as mteval-v13a: splits off ASCII punctuation, keeps numbers together
  international,  // as mteval-v14: splits off punctuation and symbols of every script
  chinese,        // every Chinese character is a word; splits off ASCII punctuation
  japanese,       // by MeCab with the dictionary IPA
  korean,         // by MeCab-ko with the dictionary mecab-ko-dic
  character,      // every character that is not white space
  none            // splits at white space only
};

struct BleuOptions {
  BleuTokenizer tokenizer = BleuTokenizer::v13a;
  bool lowercase = false;
  // Ignores n-gram orders longer than the hypothesis; for scores of single sentences.
  bool effective_order = false;
  MecabFiles mecab{};  // for Japanese and Korean
};

struct BleuScore {
  double score = 0;                             // 0 to 100
  std::array<double, kBleuOrder> precisions{};  // in percent, smoothed
  double brevity_penalty = 1;
  double ratio = 0;  // hypothesis length / reference length; 0 when the reference is empty
  std::int64_t hypothesis_length = 0, reference_length = 0;
  std::array<std::int64_t, kBleuOrder> matched{}, total{};  // n-grams of the hypothesis

  // "60.0/33.3/14.3/5.0 (BP = 1.000 ratio = 1.026 hyp_len = 39 ref_len = 38)", in sacreBLEU's
  // format.
  std::string details() const;
};

// "13a", "intl", "zh", "ja-mecab", "ko-mecab", "char" and "none".
std::vector<std::string> bleu_tokenizer_names();
// Throws UsageError for another name.
BleuTokenizer bleu_tokenizer_of(std::string_view name);
std::string_view name_of(BleuTokenizer tokenizer);
constexpr bool needs_mecab(BleuTokenizer tokenizer) {
  return tokenizer == BleuTokenizer::japanese || tokenizer == BleuTokenizer::korean;
}

// The functions below throw Error if they need MeCab and its constructor does (mecab.h).

// The words that BLEU counts in a line.
std::vector<std::string> bleu_words(std::string_view line, const BleuOptions& options);

// The score of a corpus. Throws Error where check_corpus() does.
BleuScore corpus_bleu(std::span<const std::string> hypotheses, std::span<const Lines> references,
                      const BleuOptions& options = {});
inline BleuScore corpus_bleu(std::span<const std::string> hypotheses, const Lines& reference,
                             const BleuOptions& options = {}) {
  return corpus_bleu(hypotheses, std::span(&reference, 1), options);
}

// corpus_bleu in two steps: the counts of each line, and the score of their sum.
Statistics bleu_statistics(std::span<const std::string> hypotheses,
                           std::span<const Lines> references, const BleuOptions& options);
BleuScore bleu_of(std::span<const std::int64_t> sums, const BleuOptions& options);

// E.g. "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:…".
std::string signature(const BleuOptions& options, const Setting& setting);

}  // namespace nunchi::evaluation
