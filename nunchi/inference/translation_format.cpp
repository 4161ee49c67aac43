#include "nunchi/inference/translation_format.h"

#include <fmt/format.h>

#include "nunchi/inference/alignment.h"
#include "nunchi/text/words.h"

namespace nunchi {
namespace {

std::string joined(const auto& items, const auto& text_of) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : " ") + text_of(item);
  return text;
}

std::string word_scores(const Translation& translation) {
  const Words words = words_of(translation.pieces, translation.last_piece);
  std::vector<double> scores(words.texts.size(), 0);
  for (std::size_t i = 0; i < translation.pieces.size(); ++i) {
    scores[static_cast<std::size_t>(words.word_of_piece[i])] +=
        static_cast<double>(translation.token_scores[i]);
  }
  return joined(scores, [](double score) { return fmt::format("{:.4f}", score); });
}

std::string alignment_text(const Translation& translation, Alignment kind) {
  if (translation.attention.weights.empty()) return "";
  const AttentionMatrix words = merged_into_words(translation.attention);
  if (kind == Alignment::hard) {
    return joined(hard_alignment(words), [](const std::pair<int, int>& pair) {
      return fmt::format("{}-{}", pair.first, pair.second);
    });
  }
  const std::size_t width = words.sources.size();
  std::string text;
  for (std::size_t t = 0; t < words.targets.size(); ++t) {
    if (t > 0) text += ' ';
    for (std::size_t s = 0; s < width; ++s) {
      text += fmt::format("{}{:.4f}", s > 0 ? "," : "", words.weights[t * width + s]);
    }
  }
  return text;
}

}  // namespace

std::string to_text(const TranslationFormat& format, std::int64_t number,
                    const Translations& translations) {
  const bool plain = !format.n_best && !format.word_scores && format.alignment == Alignment::none;
  if (plain) return translations[0].text + "\n";
  std::string lines;
  for (const Translation& translation : translations) {
    std::string features = fmt::format("LogProbability= {:.4f}", translation.log_probability);
    if (format.word_scores) features += " WordScores= " + word_scores(translation);
    if (format.alignment != Alignment::none) {
      features += " Alignment= " + alignment_text(translation, format.alignment);
    }
    if (format.n_best) lines += fmt::format("{} ||| ", number);
    lines += fmt::format("{} ||| {} ||| {:.4f}\n", translation.text, features, translation.score);
  }
  return lines;
}

}  // namespace nunchi
