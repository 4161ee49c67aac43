// BLEU with MeCab's words, compared with sacreBLEU on the same texts (make_expected.py). These
// comparisons are skipped where MeCab or its dictionary is not installed; the messages are not.
#include "nunchi/evaluation/mecab.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "nunchi/base/error.h"
#include "nunchi/evaluation/metric.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/paths.h"

namespace nunchi::evaluation {
namespace {

using Json = nlohmann::json;
using testing::error_of;

const std::string kFolder = NUNCHI_SOURCE_DIR "/tests/evaluation/";

Lines fixture(const std::string& name) {
  std::ifstream file(kFolder + "fixtures/" + name, std::ios::binary);
  Lines lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

void expect_sacrebleus_scores(const std::string& tokenizer) {
  const Json expected = Json::parse(std::ifstream(kFolder + "expected.json"));
  int compared = 0;
  for (const Json& given : expected.at("mecab")) {
    const Lines hypotheses = fixture(given.at("hypotheses"));
    const std::vector<Lines> references{fixture(given.at("references").at(0))};
    for (const Json& wanted : given.at("bleu")) {
      if (wanted.at("tokenize") != tokenizer) continue;
      SCOPED_TRACE(given.at("name").get<std::string>());
      const BleuOptions options{.tokenizer = bleu_tokenizer_of(tokenizer),
                                .lowercase = wanted.at("lowercase")};
      const BleuScore score = corpus_bleu(hypotheses, references, options);
      EXPECT_DOUBLE_EQ(score.score, wanted.at("score").get<double>());
      EXPECT_EQ(Json(score.matched), wanted.at("counts"));
      EXPECT_EQ(Json(score.total), wanted.at("totals"));
      EXPECT_EQ(signature(options, {}), wanted.at("signature").get<std::string>());
      ++compared;
    }
  }
  EXPECT_EQ(compared, 4);
}

// Empty if MeCab is installed for the language.
std::string reason_to_skip(MecabLanguage language) {
  try {
    const Mecab mecab(language);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Mecab, JapaneseScoresEqualSacreBleu) {
  const std::string reason = reason_to_skip(MecabLanguage::japanese);
  if (!reason.empty()) GTEST_SKIP() << reason;
  expect_sacrebleus_scores("ja-mecab");
}

TEST(Mecab, KoreanScoresEqualSacreBleu) {
  const std::string reason = reason_to_skip(MecabLanguage::korean);
  if (!reason.empty()) GTEST_SKIP() << reason;
  expect_sacrebleus_scores("ko-mecab");
}

TEST(Mecab, AMissingLibraryIsReportedWithWhatToInstall) {
  const MecabFiles nowhere{.library = "/nowhere/libmecab.so.2"};
  EXPECT_EQ(error_of([&] { Mecab(MecabLanguage::japanese, nowhere); }),
            "--tokenize ja-mecab: cannot load MeCab's library (/nowhere/libmecab.so.2: cannot open "
            "shared object file: No such file or directory). Install MeCab and its IPA dictionary "
            "(Debian: apt install libmecab2 mecab-ipadic-utf8), or give --mecab-library FILE and "
            "--mecab-dictionary FOLDER.");
  const std::string korean = error_of([&] { Mecab(MecabLanguage::korean, nowhere); });
  EXPECT_NE(korean.find("--tokenize ko-mecab: cannot load"), korean.npos) << korean;
  EXPECT_NE(korean.find("Install MeCab-ko and mecab-ko-dic"), korean.npos) << korean;
}

TEST(Mecab, AnotherLibraryIsRefused) {
  const std::string message =
      error_of([] { Mecab(MecabLanguage::japanese, {.library = "libc.so.6"}); });
  EXPECT_NE(message.find("libc.so.6 is not MeCab's library."), message.npos) << message;
}

TEST(Mecab, AFolderWithoutADictionaryIsRefused) {
  const std::string reason = reason_to_skip(MecabLanguage::japanese);
  if (!reason.empty()) GTEST_SKIP() << reason;
  const testing::TemporaryFolder empty;
  const std::string message =
      error_of([&] { Mecab(MecabLanguage::japanese, {.dictionary = empty.path()}); });
  EXPECT_NE(message.find("is not a folder with a dictionary of MeCab."), message.npos) << message;
}

// Scores of other metrics do not need MeCab.
TEST(Mecab, IsLoadedForBleuOnly) {
  const std::vector<Lines> references{{"a b"}};
  const MetricOptions options{.tokenizer = "ja-mecab", .mecab = {.library = "/nowhere"}};
  EXPECT_NO_THROW(make_metric("chrf", options, references));
  EXPECT_THROW(make_metric("bleu", options, references), Error);
}

}  // namespace
}  // namespace nunchi::evaluation
