#include "nunchi/inference/translation_format.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "nunchi/inference/alignment.h"
#include "nunchi/text/words.h"

namespace nunchi {
namespace {

using Json = nlohmann::ordered_json;

std::string joined(const auto& items, const auto& text_of) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : " ") + text_of(item);
  return text;
}

// The log-probability of each word: the sum of its pieces.
std::vector<double> scores_of_words(const Words& words, const std::vector<float>& token_scores) {
  std::vector<double> scores(words.texts.size(), 0);
  for (std::size_t i = 0; i < words.word_of_piece.size(); ++i) {
    scores[static_cast<std::size_t>(words.word_of_piece[i])] +=
        static_cast<double>(token_scores[i]);
  }
  return scores;
}

std::string word_scores(const Translation& translation) {
  const Words words = words_of(translation.pieces, translation.last_piece);
  return joined(scores_of_words(words, translation.token_scores),
                [](double score) { return fmt::format("{:.4f}", score); });
}

std::string alignment_text(const AttentionMatrix& attention, Alignment kind) {
  if (attention.weights.empty()) return "";
  const AttentionMatrix words = merged_into_words(attention);
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

// Six decimals are enough for a log-probability or a weight in f32.
double rounded(double value) { return std::round(value * 1e6) / 1e6; }

std::vector<double> rounded(const auto& values) {
  std::vector<double> all;
  all.reserve(values.size());
  for (const auto value : values) all.push_back(rounded(static_cast<double>(value)));
  return all;
}

Json alignment_json(const AttentionMatrix& attention, Alignment kind) {
  Json json = Json::array();
  if (attention.weights.empty()) return json;
  const AttentionMatrix words = merged_into_words(attention);
  if (kind == Alignment::hard) {
    for (const auto& [source, target] : hard_alignment(words)) json.push_back({source, target});
    return json;
  }
  const std::size_t width = words.sources.size();
  for (std::size_t t = 0; t < words.targets.size(); ++t) {
    json.push_back(rounded(std::span(words.weights).subspan(t * width, width)));
  }
  return json;
}

// Adds the tokens, words and alignment that `format` asks for.
void add_details(Json& json, const TranslationFormat& format, const auto& scored, LastPiece last) {
  if (format.word_scores) {
    const Words words = words_of(scored.pieces, last);
    json["tokens"] = scored.pieces;
    json["token_scores"] = rounded(scored.token_scores);
    json["words"] = words.texts;
    json["word_scores"] = rounded(scores_of_words(words, scored.token_scores));
  }
  if (format.alignment != Alignment::none) {
    json["alignment"] = alignment_json(scored.attention, format.alignment);
  }
}

// Invalid UTF-8 becomes U+FFFD.
std::string one_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
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
      features += " Alignment= " + alignment_text(translation.attention, format.alignment);
    }
    if (format.n_best) lines += fmt::format("{} ||| ", number);
    lines += fmt::format("{} ||| {} ||| {:.4f}\n", translation.text, features, translation.score);
  }
  return lines;
}

std::string to_json(const TranslationFormat& format, std::int64_t number,
                    const Translations& translations) {
  const auto add_translation = [&](Json& json, const Translation& translation) {
    json["text"] = translation.text;
    json["score"] = rounded(translation.score);
    json["log_probability"] = rounded(translation.log_probability);
    add_details(json, format, translation, translation.last_piece);
  };
  Json json = {{"id", number},
               {"unknown", rounded(translations[0].unknown_share)},
               {"unlikely", translations[0].unlikely}};
  if (!format.n_best) {
    add_translation(json, translations[0]);
    return one_line(json);
  }
  Json& list = json["n_best"] = Json::array();
  for (const Translation& translation : translations) {
    add_translation(list.emplace_back(Json::object()), translation);
  }
  return one_line(json);
}

std::string to_text(const TranslationFormat& format, const PairScore& score) {
  std::string line = fmt::format("{:.4f}", score.log_probability);
  if (format.alignment != Alignment::none) {
    line += "\t" + alignment_text(score.attention, format.alignment);
  }
  if (format.word_scores) {
    for (std::size_t i = 0; i < score.pieces.size(); ++i) {
      line += fmt::format("\t{} {:.4f}", score.pieces[i], score.token_scores[i]);
    }
  }
  return line + "\n";
}

std::string to_json(const TranslationFormat& format, std::int64_t number, const PairScore& score) {
  Json json = {{"id", number},
               {"unknown", rounded(score.unknown_share)},
               {"log_probability", rounded(score.log_probability)},
               {"token_count", score.pieces.size()},
               {"cut", score.cut}};
  add_details(json, format, score, LastPiece::end_token);
  return one_line(json);
}

}  // namespace nunchi
