#include "nunchi/evaluation/chrf.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/evaluation/ngrams.h"
#include "nunchi/evaluation/words.h"

namespace nunchi::evaluation {
namespace {

// Three counts for each order, character orders first: n-grams of the hypothesis, n-grams of the
// reference, and matches.
constexpr std::size_t kPerOrder = 3;

std::size_t width_of(const ChrfOptions& options) {
  return kPerOrder * static_cast<std::size_t>(options.character_order + options.word_order);
}

bool is_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

bool is_one_character(std::string_view word) {
  return std::ranges::count_if(
             word, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }) == 1;
}

// Splits off one punctuation mark at the end of a word or, if there is none, at its beginning.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (const std::string_view word : split(text)) {
    std::size_t cut = 0;
    if (!is_one_character(word)) {
      cut = is_punctuation(word.back()) ? word.size() - 1 : is_punctuation(word.front()) ? 1 : 0;
    }
    if (cut > 0) words.push_back(word.substr(0, cut));
    words.push_back(word.substr(cut));
  }
  return words;
}

// Counts the n-grams of one line after another, in the same memory.
class LineCounter {
 public:
  LineCounter(std::size_t references, const ChrfOptions& options)
      : options_(options),
        texts_(references + 1),
        characters_(references + 1),
        words_(references + 1),
        counts_(references * width_of(options)),
        sums_(width_of(options)) {}

  // Sentence 0 is the hypothesis, the others are references.
  void read(std::size_t sentence, std::string_view line) {
    texts_[sentence] = prepared(line, options_.lowercase ? LetterCase::lower : LetterCase::kept);
  }

  void count(std::span<std::int32_t> counts) {
    for (std::size_t s = 0; s < texts_.size(); ++s) {
      characters_[s].clear();
      for (const Character& c : visible_characters(texts_[s])) {
        characters_[s].push_back(c.code_point);
      }
    }
    count_orders(characters_, 0, options_.character_order);
    if (options_.word_order > 0) {
      symbols_.restart();
      for (std::size_t s = 0; s < texts_.size(); ++s) {
        words_[s].clear();
        for (const std::string_view word : words_of(texts_[s])) {
          words_[s].push_back(symbols_.symbol(word));
        }
      }
      count_orders(words_, options_.character_order, options_.word_order);
    }
    std::ranges::copy(best(), counts.begin());
  }

 private:
  std::span<std::int32_t> counts_against(std::size_t reference) {
    const std::size_t width = sums_.size();
    return std::span(counts_).subspan(reference * width, width);
  }

  // Counts n-grams of 1 to `orders` symbols against every reference. Their counts come after those
  // of the first `orders_before` orders.
  void count_orders(std::span<const Sequence> sequences, int orders_before, int orders) {
    ngrams_.start(sequences);
    for (int n = 0; n < orders; ++n) {
      if (n > 0) ngrams_.extend();
      const std::size_t index = kPerOrder * static_cast<std::size_t>(orders_before + n);
      ngrams_.count(0, hypothesis_counts_);
      for (std::size_t r = 0; r + 1 < sequences.size(); ++r) {
        const std::span<std::int32_t> counts = counts_against(r);
        ngrams_.count(r + 1, reference_counts_);
        const std::size_t reference_ngrams = ngrams_.of(r + 1).size();
        // An order that is longer than the reference is ignored.
        counts[index] = reference_ngrams == 0 ? 0 : static_cast<std::int32_t>(ngrams_.of(0).size());
        counts[index + 1] = static_cast<std::int32_t>(reference_ngrams);
        counts[index + 2] = shared_count(hypothesis_counts_, reference_counts_);
      }
    }
  }

  // The counts against the reference with the best score; the first of equal ones.
  std::span<const std::int32_t> best() {
    std::span<const std::int32_t> chosen = counts_against(0);
    double best_score = -1;
    for (std::size_t r = 0; r + 1 < texts_.size() && texts_.size() > 2; ++r) {
      std::ranges::copy(counts_against(r), sums_.begin());
      const double score = chrf_of(sums_, options_);
      if (score <= best_score) continue;
      best_score = score;
      chosen = counts_against(r);
    }
    return chosen;
  }

  ChrfOptions options_;
  std::vector<std::string> texts_;
  std::vector<Sequence> characters_, words_;
  WordSymbols symbols_;
  Ngrams ngrams_;
  std::vector<std::int32_t> hypothesis_counts_, reference_counts_;
  std::vector<std::int32_t> counts_;  // [references, width]
  std::vector<std::int64_t> sums_;    // [width]
};

}  // namespace

Statistics chrf_statistics(std::span<const std::string> hypotheses,
                           std::span<const Lines> references, const ChrfOptions& options) {
  if (options.character_order < 1 || options.word_order < 0 || options.beta < 1) {
    throw UsageError("chrF needs a character order and a beta of at least 1.");
  }
  check_corpus(hypotheses, references);
  Statistics statistics(hypotheses.size(), width_of(options));
  LineCounter counter(references.size(), options);
  for (std::size_t line = 0; line < hypotheses.size(); ++line) {
    counter.read(0, hypotheses[line]);
    for (std::size_t r = 0; r < references.size(); ++r) counter.read(r + 1, references[r][line]);
    counter.count(statistics.line(line));
  }
  return statistics;
}

double chrf_of(std::span<const std::int64_t> sums, const ChrfOptions& options) {
  double precision = 0, recall = 0;
  int orders = 0;  // orders that both sides are long enough for
  for (std::size_t i = 0; i < sums.size(); i += kPerOrder) {
    if (sums[i] == 0 || sums[i + 1] == 0) continue;
    const auto matched = static_cast<double>(sums[i + 2]);
    precision += matched / static_cast<double>(sums[i]);
    recall += matched / static_cast<double>(sums[i + 1]);
    ++orders;
  }
  if (precision + recall == 0) return 0;
  precision /= orders;
  recall /= orders;
  const double factor = options.beta * options.beta;
  return 100 * ((1 + factor) * precision * recall / (factor * precision + recall));
}

double corpus_chrf(std::span<const std::string> hypotheses, std::span<const Lines> references,
                   const ChrfOptions& options) {
  return chrf_of(chrf_statistics(hypotheses, references, options).sum(), options);
}

std::string name_of(const ChrfOptions& options) {
  return fmt::format("chrF{}{}", options.beta,
                     std::string(static_cast<std::size_t>(options.word_order), '+'));
}

std::string signature(const ChrfOptions& options, const Setting& setting) {
  return signature_of(setting, fmt::format("case:{}|eff:yes|nc:{}|nw:{}|space:no",
                                           options.lowercase ? "lc" : "mixed",
                                           options.character_order, options.word_order));
}

}  // namespace nunchi::evaluation
