#include "nunchi/evaluation/bleu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>

#include "nunchi/base/error.h"
#include "nunchi/evaluation/ngrams.h"
#include "nunchi/evaluation/tokenizer_13a.h"
#include "nunchi/evaluation/tokenizer_intl.h"
#include "nunchi/evaluation/tokenizer_zh.h"
#include "nunchi/evaluation/words.h"

namespace nunchi::evaluation {
namespace {

// Indices of the counts of a line.
constexpr std::size_t kHypothesisLength = 0, kReferenceLength = 1, kMatched = 2,
                      kTotal = kMatched + kBleuOrder, kWidth = kTotal + kBleuOrder;

struct NamedTokenizer {
  BleuTokenizer tokenizer;
  std::string_view name;
};
constexpr std::array<NamedTokenizer, 7> kTokenizers{{{BleuTokenizer::v13a, "13a"},
                                                     {BleuTokenizer::international, "intl"},
                                                     {BleuTokenizer::chinese, "zh"},
                                                     {BleuTokenizer::japanese, "ja-mecab"},
                                                     {BleuTokenizer::korean, "ko-mecab"},
                                                     {BleuTokenizer::character, "char"},
                                                     {BleuTokenizer::none, "none"}}};

// Null for tokenizers that do not need MeCab.
std::unique_ptr<Mecab> mecab_for(const BleuOptions& options) {
  if (!needs_mecab(options.tokenizer)) return nullptr;
  const bool japanese = options.tokenizer == BleuTokenizer::japanese;
  return std::make_unique<Mecab>(japanese ? MecabLanguage::japanese : MecabLanguage::korean,
                                 options.mecab);
}

class WordSplitter {
 public:
  explicit WordSplitter(const BleuOptions& options)
      : options_(options), mecab_(mecab_for(options)) {}

  // The line as words_of() splits it; words_of() returns views of the result.
  std::string splittable(std::string_view line) const {
    const std::string text =
        prepared(line, options_.lowercase ? LetterCase::lower : LetterCase::kept);
    const std::string_view line_text = stripped_right(text);
    switch (options_.tokenizer) {
      case BleuTokenizer::v13a:
        return tokenized_13a(line_text);
      case BleuTokenizer::international:
        return tokenized_intl(line_text);
      case BleuTokenizer::chinese:
        return tokenized_zh(stripped(line_text));
      case BleuTokenizer::japanese:
      case BleuTokenizer::korean:
        return mecab_->tokenized(stripped(line_text));
      case BleuTokenizer::character:
      case BleuTokenizer::none:
        break;
    }
    return std::string(line_text);
  }

  std::vector<std::string_view> words_of(std::string_view text) const {
    if (options_.tokenizer != BleuTokenizer::character) return split(text);
    std::vector<std::string_view> words;
    for (const Character& character : visible_characters(text)) words.push_back(character.bytes);
    return words;
  }

 private:
  BleuOptions options_;
  std::unique_ptr<Mecab> mecab_;
};

// The reference length closest to that of the hypothesis; the shorter of two equally close ones.
std::size_t closest_length(std::size_t length, std::span<const Sequence> references) {
  std::size_t closest = references.front().size();
  const auto distance = [&](std::size_t other) {
    return other > length ? other - length : length - other;
  };
  for (const Sequence& reference : references) {
    const std::size_t other = reference.size();
    if (distance(other) < distance(closest)) closest = other;
    if (distance(other) == distance(closest)) closest = std::min(closest, other);
  }
  return closest;
}

// Counts the n-grams of one line after another, in the same memory.
class LineCounter {
 public:
  LineCounter(std::size_t references, const BleuOptions& options)
      : splitter_(options), texts_(references + 1), sequences_(references + 1) {}

  // Sentence 0 is the hypothesis, the others are references.
  void read(std::size_t sentence, std::string_view line) {
    texts_[sentence] = splitter_.splittable(line);
  }

  void count(std::span<std::int32_t> counts) {
    symbols_.restart();
    for (std::size_t s = 0; s < texts_.size(); ++s) {
      sequences_[s].clear();
      for (const std::string_view word : splitter_.words_of(texts_[s])) {
        sequences_[s].push_back(symbols_.symbol(word));
      }
    }
    const std::size_t length = sequences_.front().size();
    counts[kHypothesisLength] = static_cast<std::int32_t>(length);
    counts[kReferenceLength] = static_cast<std::int32_t>(
        closest_length(length, std::span<const Sequence>(sequences_).subspan(1)));
    ngrams_.start(sequences_);
    for (std::size_t n = 0; n < kBleuOrder; ++n) {
      if (n > 0) ngrams_.extend();
      counts[kTotal + n] = static_cast<std::int32_t>(ngrams_.of(0).size());
      counts[kMatched + n] = matched();
    }
  }

 private:
  // The count of each n-gram is clipped to its largest count in any reference.
  std::int32_t matched() {
    ngrams_.count(1, max_counts_);
    for (std::size_t s = 2; s < sequences_.size(); ++s) {
      ngrams_.count(s, counts_);
      std::ranges::transform(max_counts_, counts_, max_counts_.begin(),
                             [](std::int32_t a, std::int32_t b) { return std::max(a, b); });
    }
    ngrams_.count(0, counts_);
    return shared_count(counts_, max_counts_);
  }

  WordSplitter splitter_;
  std::vector<std::string> texts_;
  std::vector<Sequence> sequences_;
  WordSymbols symbols_;
  Ngrams ngrams_;
  std::vector<std::int32_t> max_counts_, counts_;
};

}  // namespace

std::string BleuScore::details() const {
  return fmt::format(
      "{:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})",
      precisions[0], precisions[1], precisions[2], precisions[3], brevity_penalty, ratio,
      hypothesis_length, reference_length);
}

std::vector<std::string> bleu_tokenizer_names() {
  std::vector<std::string> names;
  names.reserve(kTokenizers.size());
  for (const NamedTokenizer& known : kTokenizers) names.emplace_back(known.name);
  return names;
}

BleuTokenizer bleu_tokenizer_of(std::string_view name) {
  const auto* known = std::ranges::find(kTokenizers, name, &NamedTokenizer::name);
  if (known != kTokenizers.end()) return known->tokenizer;
  throw UsageError(fmt::format("'{}' is not a tokenizer of BLEU; use {}.", name,
                               fmt::join(bleu_tokenizer_names(), ", ")));
}

std::string_view name_of(BleuTokenizer tokenizer) {
  return std::ranges::find(kTokenizers, tokenizer, &NamedTokenizer::tokenizer)->name;
}

std::vector<std::string> bleu_words(std::string_view line, const BleuOptions& options) {
  const WordSplitter splitter(options);
  const std::string text = splitter.splittable(line);
  const std::vector<std::string_view> words = splitter.words_of(text);
  return {words.begin(), words.end()};
}

Statistics bleu_statistics(std::span<const std::string> hypotheses,
                           std::span<const Lines> references, const BleuOptions& options) {
  check_corpus(hypotheses, references);
  Statistics statistics(hypotheses.size(), kWidth);
  LineCounter counter(references.size(), options);
  for (std::size_t line = 0; line < hypotheses.size(); ++line) {
    counter.read(0, hypotheses[line]);
    for (std::size_t r = 0; r < references.size(); ++r) counter.read(r + 1, references[r][line]);
    counter.count(statistics.line(line));
  }
  return statistics;
}

BleuScore bleu_of(std::span<const std::int64_t> sums, const BleuOptions& options) {
  BleuScore score;
  score.hypothesis_length = sums[kHypothesisLength];
  score.reference_length = sums[kReferenceLength];
  std::copy_n(&sums[kMatched], kBleuOrder, score.matched.begin());
  std::copy_n(&sums[kTotal], kBleuOrder, score.total.begin());
  const auto length = static_cast<double>(score.hypothesis_length);
  const auto reference = static_cast<double>(score.reference_length);
  if (reference > 0) score.ratio = length / reference;
  if (length < reference) score.brevity_penalty = length > 0 ? std::exp(1 - reference / length) : 0;
  if (std::ranges::all_of(score.matched, [](std::int64_t n) { return n == 0; })) return score;

  double smoothing = 1, logarithms = 0;
  std::size_t orders = 0;  // orders that the hypothesis is long enough for
  for (; orders < kBleuOrder && score.total[orders] > 0; ++orders) {
    const auto total = static_cast<double>(score.total[orders]);
    const auto matched = static_cast<double>(score.matched[orders]);
    // The first order without a match counts as half a match, the next as a quarter, and so on.
    if (matched == 0) smoothing *= 2;
    const double precision = matched > 0 ? 100 * matched / total : 100 / (smoothing * total);
    score.precisions[orders] = precision;
    logarithms += std::log(precision);
  }
  // An order without n-grams has precision 0, which makes the geometric mean 0.
  if (orders < kBleuOrder && !options.effective_order) return score;
  score.score = score.brevity_penalty * std::exp(logarithms / static_cast<double>(orders));
  return score;
}

BleuScore corpus_bleu(std::span<const std::string> hypotheses, std::span<const Lines> references,
                      const BleuOptions& options) {
  return bleu_of(bleu_statistics(hypotheses, references, options).sum(), options);
}

std::string signature(const BleuOptions& options, const Setting& setting) {
  // With MeCab's version, on which the words depend.
  const std::unique_ptr<Mecab> mecab = mecab_for(options);
  const std::string tokenizer = mecab ? mecab->name() : std::string(name_of(options.tokenizer));
  return signature_of(
      setting, fmt::format("case:{}|eff:{}|tok:{}|smooth:exp", options.lowercase ? "lc" : "mixed",
                           options.effective_order ? "yes" : "no", tokenizer));
}

}  // namespace nunchi::evaluation
