#include "nunchi/inference/translator.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "nunchi/base/error.h"
#include "nunchi/kernels/product.h"
#include "tests/inference/small_translation.h"

namespace nunchi::testing {
namespace {

TEST(Translator, ALineIsTheSameInEveryBatchAndOrder) {
  if (!kernels::rows_are_independent())
    GTEST_SKIP() << "GEMM results depend on the number of rows here";
  SmallTranslation s;
  std::vector<SearchOptions> searches(3, {.max_length = 12});
  searches[1].beam_size = searches[1].n_best = 3;
  searches[2] = {.n_best = 2, .sample = true, .max_length = 12};
  for (const SearchOptions& search : searches) {
    const std::vector<SourceLine> lines = lines_of(some_texts());
    const auto together = s.translator({.search = search}).translate(lines);
    ASSERT_EQ(together.size(), lines.size());
    for (const TranslatorOptions& options :
         {TranslatorOptions{.search = search, .batch_sentences = 1},
          TranslatorOptions{.search = search, .batch_sentences = 4},
          TranslatorOptions{.search = search, .batch_tokens = 1},
          TranslatorOptions{.search = search, .batch_tokens = 40}}) {
      std::vector<SourceLine> reversed(lines.rbegin(), lines.rend());
      const auto found = s.translator(options).translate(reversed);
      ASSERT_EQ(found.size(), lines.size());
      for (std::size_t i = 0; i < lines.size(); ++i) {
        const Translations& a = found[lines.size() - 1 - i];
        const Translations& b = together[i];
        ASSERT_EQ(a.size(), b.size());
        for (std::size_t j = 0; j < a.size(); ++j) {
          EXPECT_TRUE(same(a[j], b[j])) << "line " << i << ": " << a[j].text << " | " << b[j].text;
        }
      }
    }
  }
}

TEST(Translator, ALineWithoutWordsHasAnEmptyTranslation) {
  SmallTranslation s;
  Translator translator = s.translator({.search = {.beam_size = 2, .n_best = 2, .max_length = 5}});
  const auto found = translator.translate(lines_of({"", " ", "    ", "a dog", "▁"}));
  for (const std::size_t line : {0, 1, 2, 4}) {
    ASSERT_EQ(found[line].size(), 1u);
    EXPECT_EQ(found[line][0].text, "");
    EXPECT_TRUE(found[line][0].pieces.empty());
    EXPECT_EQ(found[line][0].score, 0);
  }
  EXPECT_EQ(found[3].size(), 2u);
  EXPECT_EQ(translator.counts().empty, 4);
  EXPECT_TRUE(translator.translate(std::vector<SourceLine>{}).empty());
}

TEST(Translator, RepairsInvalidBytesAndCountsTheirLines) {
  SmallTranslation s;
  Translator translator = s.translator();
  const std::string repaired = translator.translate("a \uFFFDdog").text;
  EXPECT_EQ(translator.counts().repaired, 0);
  EXPECT_EQ(translator
                .translate("a \xFF"
                           "dog")
                .text,
            repaired);
  EXPECT_EQ(translator
                .translate("a \xED\xA0"
                           "dog")
                .text,
            translator.translate("a \uFFFD\uFFFDdog").text);
  EXPECT_EQ(translator.counts().repaired, 2);
  translator.translate(std::vector<SourceLine>{{.text = "a\xC3", .prefix = "b\xC3"}});
  translator.translate(std::vector<SourceLine>{{.text = "a", .prefix = "b\xC3"}});
  EXPECT_EQ(translator.counts().repaired, 4);
}

TEST(Translator, TakesAnyBytes) {
  SmallTranslation s;
  Translator translator = s.translator({.search = {.max_length = 3}});
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const auto found = translator.translate(
      lines_of({std::string("a\0b", 3), std::string("\0", 1), all, "\u2028", ""}));
  EXPECT_EQ(found.size(), 5u);
  EXPECT_EQ(translator.counts().repaired, 1);
}

TEST(Translator, CutsLongLinesAndCountsThem) {
  SmallTranslation s;
  Translator translator = s.translator({.search = {.max_length = 5}, .max_source_length = 7});
  const std::string text = "dog dog dog dog dog dog dog dog";
  const std::string translation = translator.translate(text).text;
  EXPECT_EQ(translator.counts().cut, 1);
  EXPECT_EQ(translator.translate(text + " and much more").text, translation);
  translator.translate(std::string(1 << 20, 'x'));
  EXPECT_EQ(translator.counts().cut, 3);
  translator.translate("x");
  EXPECT_EQ(translator.counts().cut, 3);
}

TEST(Translator, CutsLinesAndPrefixesToTheModelsPositions) {
  TransformerConfig config = small_config();
  config.position = nn::PositionKind::learned;
  config.max_positions = 9;
  SmallTranslation s(letter_tokenizer(), config);
  Translator translator = s.translator();
  const std::string text = "the quick brown fox jumps over the lazy dog";
  const auto found = translator.translate(std::vector<SourceLine>{{.text = text},
                                                                  {.text = "fox", .prefix = text},
                                                                  {.text = text, .prefix = text},
                                                                  {.text = "a"}});
  for (const Translations& each : found) {
    EXPECT_LE(each[0].pieces.size(), 9u);
    EXPECT_FALSE(each[0].pieces.empty());
  }
  EXPECT_EQ(found[1][0].text.rfind("the", 0), 0u) << found[1][0].text;
  EXPECT_EQ(translator.counts().cut, 3);
}

TEST(Translator, NBestIsSortedAndHasNoDuplicates) {
  SmallTranslation s;
  Translator translator = s.translator({.search = {.beam_size = 6, .n_best = 4, .max_length = 8}});
  for (const Translations& each : translator.translate(lines_of({"a dog", "the fox", "x"}))) {
    ASSERT_EQ(each.size(), 4u);
    std::set<std::vector<std::string>> different;
    for (std::size_t i = 0; i < each.size(); ++i) {
      EXPECT_LE(each[i].score, each[i == 0 ? 0 : i - 1].score);
      different.insert(each[i].pieces);
    }
    EXPECT_EQ(different.size(), 4u);
  }
}

TEST(Translator, ScoresAddUp) {
  SmallTranslation s;
  for (const double normalize : {0.0, 1.0, 0.6}) {
    Translator translator = s.translator(
        {.search = {.beam_size = 4, .normalize = normalize, .n_best = 4, .max_length = 8}});
    for (const Translations& each : translator.translate(lines_of({"a dog", "the fox", "x"}))) {
      for (const Translation& translation : each) {
        ASSERT_EQ(translation.token_scores.size(), translation.pieces.size());
        const double sum =
            std::accumulate(translation.token_scores.begin(), translation.token_scores.end(), 0.0);
        EXPECT_NEAR(translation.log_probability, sum, 1e-4);
        EXPECT_NEAR(translation.score,
                    translation.log_probability /
                        std::pow(static_cast<double>(translation.pieces.size()), normalize),
                    1e-9);
      }
    }
  }
}

TEST(Translator, AttentionIsAMatrixOfRowsThatSumToOne) {
  SmallTranslation s;
  Translator translator =
      s.translator({.search = {.beam_size = 3, .n_best = 3, .max_length = 10}, .alignment = true});
  const std::vector<std::string> texts = some_texts();
  const auto found = translator.translate(lines_of(texts));
  int cut = 0;
  for (std::size_t line = 0; line < texts.size(); ++line) {
    if (texts[line].empty()) {
      EXPECT_TRUE(found[line][0].attention.weights.empty());
      continue;
    }
    for (const Translation& translation : found[line]) {
      const AttentionMatrix& attention = translation.attention;
      std::vector<std::string> sources;
      for (const std::int32_t id : s.tokenizers.source().encode(texts[line])) {
        sources.push_back(s.tokenizers.source().piece(id));
      }
      sources.emplace_back("</s>");
      EXPECT_EQ(attention.sources, sources);
      EXPECT_EQ(attention.targets, translation.pieces);
      cut += translation.pieces.back() != "</s>" ? 1 : 0;
      ASSERT_EQ(attention.weights.size(), attention.targets.size() * sources.size());
      for (std::size_t t = 0; t < attention.targets.size(); ++t) {
        const auto row =
            attention.weights.begin() + static_cast<std::ptrdiff_t>(t * sources.size());
        EXPECT_NEAR(std::accumulate(row, row + static_cast<std::ptrdiff_t>(sources.size()), 0.0), 1,
                    1e-5);
        EXPECT_GE(*std::min_element(row, row + static_cast<std::ptrdiff_t>(sources.size())), 0);
      }
    }
  }
  EXPECT_GT(cut, 0);  // some were cut at the maximum length, without </s>
}

TEST(Translator, BeginsWithThePrefix) {
  SmallTranslation s;
  Translator translator = s.translator({.search = {.beam_size = 2, .n_best = 2, .max_length = 14}});
  const auto found = translator.translate(std::vector<SourceLine>{
      {.text = "a dog", .prefix = "the fox"}, {.text = "a dog"}, {.text = "", .prefix = "zebra"}});
  const std::size_t length = s.tokenizers.target().encode("the fox").size();
  for (const Translation& translation : found[0]) {
    EXPECT_EQ(translation.text.rfind("the fox", 0), 0u) << translation.text;
    EXPECT_GT(translation.pieces.size(), length);  // at least one token more
    for (std::size_t i = 0; i < length; ++i) EXPECT_EQ(translation.token_scores[i], 0);
  }
  EXPECT_EQ(found[1][0].text, translator.translate("a dog").text);
  EXPECT_EQ(found[2][0].text, "");
}

TEST(Translator, DrawsDependOnTheLinesNumber) {
  if (!kernels::rows_are_independent())
    GTEST_SKIP() << "GEMM results depend on the number of rows here";
  SmallTranslation s;
  const TranslatorOptions options{
      .search = {.n_best = 2, .sample = true, .seed = 3, .max_length = 10}};
  Translator translator = s.translator(options);
  const auto found = translator.translate(
      std::vector<SourceLine>{{.text = "a dog", .number = 7}, {.text = "a dog", .number = 8}});
  EXPECT_NE(found[0][0].text, found[1][0].text);
  EXPECT_NE(found[0][0].text, found[0][1].text);
  const auto alone = translator.translate(std::vector<SourceLine>{{.text = "a dog", .number = 8}});
  EXPECT_TRUE(same(alone[0][0], found[1][0]));
  EXPECT_TRUE(same(alone[0][1], found[1][1]));
  TranslatorOptions other = options;
  other.search.seed = 4;
  EXPECT_NE(s.translator(other)
                .translate(std::vector<SourceLine>{{.text = "a dog", .number = 8}})[0][0]
                .text,
            alone[0][0].text);
}

// One line for each translation, even though the model can generate "\n".
TEST(Translator, CountsTranslationsThatAreUnlikelyForTheModel) {
  SmallTranslation s;
  const auto translator = [&](const std::optional<TypicalScores>& typical,
                              const SearchOptions& search = {.max_length = 12}) {
    return Translator(s.context, {{*s.model, s.tokenizers, "the model", typical}},
                      {.search = search});
  };
  const std::vector<SourceLine> lines = lines_of({"a dog", "the old fox", ""});
  // Random weights make no translation likely.
  const TypicalScores sure{.median = -0.01, .low = -0.02}, unsure{.median = -50, .low = -100};
  Translator judging = translator(sure);
  const auto found = judging.translate(lines);
  EXPECT_TRUE(found[0][0].unlikely && found[1][0].unlikely);
  EXPECT_FALSE(found[2][0].unlikely) << "an empty line";
  EXPECT_EQ(judging.counts().unlikely, 2);

  for (const std::optional<TypicalScores>& typical : {std::optional(unsure), {}}) {
    Translator other = translator(typical);
    EXPECT_FALSE(other.translate(lines)[0][0].unlikely);
    EXPECT_EQ(other.counts().unlikely, 0);
  }
  // The tokens of a prefix or a sample are not those that the model finds likely.
  Translator sampling = translator(sure, {.sample = true, .max_length = 12});
  sampling.translate(lines);
  EXPECT_EQ(sampling.counts().unlikely, 0);
  Translator prefixed = translator(sure);
  prefixed.translate(std::vector<SourceLine>{{.text = "a dog", .prefix = "the"}});
  EXPECT_EQ(prefixed.counts().unlikely, 0);
}

TEST(Translator, ATranslationIsOneLine) {
  SmallTranslation s;
  Translator translator =
      s.translator({.search = {.n_best = 400, .sample = true, .max_length = 12}});
  bool has_line_break = false;
  const auto found = translator.translate(lines_of({"a dog"}));
  for (const Translation& translation : found[0]) {
    EXPECT_EQ(translation.text.find_first_of("\r\n"), std::string::npos);
    has_line_break = has_line_break || std::ranges::count(translation.pieces, "<0x0A>") > 0;
  }
  EXPECT_TRUE(has_line_break) << "the model never generated one";
}

TEST(Translator, RefusesTokenizersAndOptionsThatDoNotFit) {
  SmallTranslation s;
  const Tokenizers other(letter_tokenizer());
  const std::string message = error_of([&] { Translator(s.context, *s.model, other, {}); });
  EXPECT_NE(message.find("the source tokenizer has 34 tokens, but the model knows 310"),
            std::string::npos)
      << message;
  EXPECT_THROW(s.translator({.search = {.beam_size = 0}}), UsageError);
}

}  // namespace
}  // namespace nunchi::testing
