#include "nunchi/evaluation/ter.h"

#include <fmt/format.h>

#include <algorithm>

#include "nunchi/evaluation/ngrams.h"
#include "nunchi/evaluation/tercom_edits.h"
#include "nunchi/evaluation/words.h"

namespace nunchi::evaluation {
namespace {

// Indices of the counts of a line. kReferenceLength is the sum over the references.
constexpr std::size_t kEdits = 0, kReferenceLength = 1, kWidth = 2;

// The line as split() splits it.
std::string splittable(std::string_view line, const TerOptions& options) {
  const std::string text =
      prepared(line, options.case_sensitive ? LetterCase::kept : LetterCase::lower);
  return tokenized_tercom(stripped_right(text), options.tokenizer);
}

TerScore score_of(std::int64_t edits, double reference_length) {
  TerScore score{.edits = edits, .reference_length = reference_length};
  if (reference_length > 0) {
    score.score = 100 * (static_cast<double>(edits) / reference_length);
  } else if (edits > 0) {
    score.score = 100;
  }
  return score;
}

double mean_length(std::int64_t sum, std::size_t references) {
  return static_cast<double>(sum) / static_cast<double>(references);
}

// Counts the edits of one line after another, in the same memory.
class LineCounter {
 public:
  explicit LineCounter(const TerOptions& options) : options_(options) {}

  void count(const std::string& hypothesis, std::span<const Lines> references, std::size_t line,
             std::span<std::int32_t> counts) {
    texts_.clear();
    texts_.push_back(splittable(hypothesis, options_));
    for (const Lines& reference : references) {
      texts_.push_back(splittable(reference[line], options_));
    }
    symbols_.restart();
    read(texts_[0], hypothesis_);
    std::int64_t fewest = 0, length = 0;
    for (std::size_t r = 1; r < texts_.size(); ++r) {
      read(texts_[r], reference_);
      const std::int64_t edits = edits_.count(hypothesis_, reference_);
      fewest = r == 1 ? edits : std::min(fewest, edits);
      length += std::ssize(reference_);
    }
    counts[kEdits] = static_cast<std::int32_t>(fewest);
    counts[kReferenceLength] = static_cast<std::int32_t>(length);
  }

 private:
  void read(const std::string& text, Sequence& words) {
    words.clear();
    for (const std::string_view word : split(text)) words.push_back(symbols_.symbol(word));
  }

  TerOptions options_;
  std::vector<std::string> texts_;
  WordSymbols symbols_;
  Sequence hypothesis_, reference_;
  TercomEdits edits_;
};

const char* yes_or_no(bool value) { return value ? "yes" : "no"; }

}  // namespace

std::vector<std::string> ter_words(std::string_view line, const TerOptions& options) {
  const std::string text = splittable(line, options);
  const std::vector<std::string_view> words = split(text);
  return {words.begin(), words.end()};
}

Statistics ter_statistics(std::span<const std::string> hypotheses,
                          std::span<const Lines> references, const TerOptions& options) {
  check_corpus(hypotheses, references);
  Statistics statistics(hypotheses.size(), kWidth);
  LineCounter counter(options);
  for (std::size_t line = 0; line < hypotheses.size(); ++line) {
    counter.count(hypotheses[line], references, line, statistics.line(line));
  }
  return statistics;
}

TerScore ter_of(const Statistics& statistics, std::size_t references) {
  std::int64_t edits = 0;
  double length = 0;
  for (std::size_t line = 0; line < statistics.line_count(); ++line) {
    const auto counts = statistics.line(line);
    edits += counts[kEdits];
    length += mean_length(counts[kReferenceLength], references);
  }
  return score_of(edits, length);
}

TerScore ter_of(std::span<const std::int64_t> sums, std::size_t references) {
  return score_of(sums[kEdits], mean_length(sums[kReferenceLength], references));
}

TerScore corpus_ter(std::span<const std::string> hypotheses, std::span<const Lines> references,
                    const TerOptions& options) {
  return ter_of(ter_statistics(hypotheses, references, options), references.size());
}

std::string signature(const TerOptions& options, const Setting& setting) {
  return signature_of(setting, fmt::format("case:{}|tok:tercom|norm:{}|punct:{}|asian:{}",
                                           options.case_sensitive ? "mixed" : "lc",
                                           yes_or_no(options.tokenizer.normalized),
                                           yes_or_no(!options.tokenizer.no_punctuation),
                                           yes_or_no(options.tokenizer.asian_support)));
}

}  // namespace nunchi::evaluation
