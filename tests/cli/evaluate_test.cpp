// `nunchi evaluate`: output, messages and exit codes.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/paths.h"

namespace nunchi::testing {
namespace {

using Json = nlohmann::json;

const std::string kTexts = NUNCHI_SOURCE_DIR "/tests/evaluation/fixtures/";
const std::string kEnglish = "evaluate " + kTexts + "english.hyp --reference " + kTexts;

Json json_of(const ProgramResult& result) {
  EXPECT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(std::ranges::count(result.out, '\n'), 1) << result.out;
  return Json::parse(result.out);
}

// The case with this name in expected.json.
Json expected(const std::string& name) {
  const Json all = Json::parse(std::ifstream(NUNCHI_SOURCE_DIR "/tests/evaluation/expected.json"));
  for (const Json& one : all.at("cases")) {
    if (one.at("name") == name) return one;
  }
  ADD_FAILURE() << "no case " << name;
  return {};
}

TEST(Evaluate, JsonHasScoresAndSignatures) {
  const Json json = json_of(run(kEnglish + "english.ref0 --json"));
  const Json wanted = expected("english");
  EXPECT_EQ(json.at("lines"), 24);
  for (const char* field : {"score", "brevity_penalty", "ratio"}) {
    EXPECT_DOUBLE_EQ(json.at("bleu").at(field), wanted.at("bleu").at(0).at(field)) << field;
  }
  for (const char* field :
       {"signature", "counts", "totals", "hypothesis_length", "reference_length", "details"}) {
    EXPECT_EQ(json.at("bleu").at(field), wanted.at("bleu").at(0).at(field)) << field;
  }
  EXPECT_DOUBLE_EQ(json.at("chrf").at("score"), wanted.at("chrf").at(0).at("score"));
  EXPECT_EQ(json.at("chrf").at("signature"), wanted.at("chrf").at(0).at("signature"));
  EXPECT_DOUBLE_EQ(json.at("chrf++").at("score"), wanted.at("chrf").at(2).at("score"));
}

TEST(Evaluate, AcceptsSeveralReferencesAndOptions) {
  const Json json = json_of(run(kEnglish + "english.ref0 " + kTexts + "english.ref1 --reference " +
                                kTexts + "english.ref2 --lowercase --tokenize char --json"));
  const Json wanted = expected("english, three references").at("bleu").at(7);
  EXPECT_EQ(json.at("references"), 3);
  EXPECT_EQ(json.at("bleu").at("signature"), wanted.at("signature"));
  EXPECT_DOUBLE_EQ(json.at("bleu").at("score"), wanted.at("score"));
}

TEST(Evaluate, PrintsOneBlockForEachMetric) {
  const ProgramResult result = run(kEnglish + "english.ref0 --metric chrf,bleu,chrf");
  EXPECT_EQ(result.code, 0);
  EXPECT_TRUE(result.error.empty()) << result.error;
  EXPECT_EQ(result.out,
            "chrF2              75.87\n"
            "  signature        nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0\n"
            "BLEU               55.61\n"
            "  precisions       85.9 / 65.4 / 50.0 / 37.2\n"
            "  brevity penalty   0.978\n"
            "  length            0.978   270 of 276 words\n"
            "  signature        nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0\n");
}

TEST(Evaluate, TerHasItsOwnOptions) {
  const std::string call = kEnglish + "english.ref0 --metric ter --ter-normalized";
  const Json wanted = expected("english").at("ter").at(1);
  const Json ter = json_of(run(call + " --ter-case-sensitive --json")).at("ter");
  for (const char* field : {"score", "signature", "edits", "reference_length"}) {
    EXPECT_EQ(ter.at(field), wanted.at(field)) << field;
  }
  const ProgramResult plain = run(kEnglish + "english.ref0 --metric ter");
  EXPECT_EQ(plain.out.find("TER                "), 0u) << plain.out;
  EXPECT_NE(plain.out.find("\n  edits            "), std::string::npos) << plain.out;
  const ProgramResult refused = run(kEnglish + "english.ref0 --ter-no-punct");
  EXPECT_EQ(refused.error, "nunchi: --ter-no-punct has no effect without --metric ter.\n");
}

TEST(Evaluate, SaysThatTwoSystemsAreIdentical) {
  const std::string call = kEnglish + "english.ref0 --against " + kTexts + "english.hyp";
  const ProgramResult result = run(call + " --bootstrap 50");
  EXPECT_EQ(result.code, 0);
  EXPECT_NE(result.error.find("have the same lines; they do not differ.\n"), std::string::npos);
  EXPECT_EQ(result.out.find("p = "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("  difference        0.00   no line differs\n"), std::string::npos)
      << result.out;
  const Json json = json_of(run(call + " --bootstrap 50 --json")).at("bleu");
  EXPECT_EQ(json.at("identical"), true);
  EXPECT_EQ(json.at("p_value"), 1.0);
  const ProgramResult other = run(kEnglish + "english.ref0 --against " + kTexts + "english.ref1");
  EXPECT_TRUE(other.error.empty()) << other.error;
  EXPECT_NE(other.out.find("p = "), std::string::npos);
}

TEST(Evaluate, ScoresEachLineSeparately) {
  const Json wanted = expected("english").at("bleu").at(0);
  const Json json = json_of(run(kEnglish + "english.ref0 --sentence --metric bleu --json"));
  EXPECT_EQ(json.at("bleu").at("signature"), wanted.at("sentence_signature"));
  ASSERT_EQ(json.at("bleu").at("sentences").size(), 24u);
  for (std::size_t line = 0; line < 24; ++line) {
    EXPECT_DOUBLE_EQ(json.at("bleu").at("sentences").at(line), wanted.at("sentences").at(line));
  }
  const ProgramResult plain = run(kEnglish + "english.ref0 --sentence --metric bleu,chrf");
  EXPECT_EQ(std::ranges::count(plain.out, '\n'), 24);
  EXPECT_EQ(std::ranges::count(plain.out, '\t'), 24);
  EXPECT_NE(plain.error.find("eff:yes"), std::string::npos);
}

TEST(Evaluate, ComparesTwoSystems) {
  const std::string call = kEnglish + "english.ref1 --against " + kTexts + "english.ref2 --json";
  const Json json = json_of(run(call + " --bootstrap 200 --seed 5"));
  for (const char* metric : {"bleu", "chrf", "chrf++"}) {
    const Json& one = json.at(metric);
    EXPECT_EQ(one.at("signature").get<std::string>().find("nrefs:1|bs:200|seed:5|"), 0u);
    EXPECT_NEAR(one.at("mean").get<double>(), one.at("score").get<double>(),
                one.at("interval").get<double>());
    EXPECT_GT(one.at("against").at("interval").get<double>(), 0);
    EXPECT_GT(one.at("p_value").get<double>(), 0);
    EXPECT_LE(one.at("p_value").get<double>(), 1);
  }
  EXPECT_EQ(json, json_of(run(call + " --bootstrap 200 --seed 5")));
  EXPECT_NE(json, json_of(run(call + " --bootstrap 200 --seed 6")));
  const Json alone = json_of(run(kEnglish + "english.ref1 --bootstrap 50 --json")).at("bleu");
  EXPECT_TRUE(alone.contains("interval"));
  EXPECT_FALSE(alone.contains("p_value"));
}

TEST(Evaluate, ReadsStandardInput) {
  const ProgramResult result =
      run("evaluate - --reference " + kTexts + "english.ref0 --json", "", kTexts + "english.hyp");
  EXPECT_EQ(result.out, run(kEnglish + "english.ref0 --json").out);
}

TEST(Evaluate, CountsLinesWithInvalidBytes) {
  const TemporaryFolder folder;
  write_text(folder / "hyp", "a\xFF\nb\n\xC3\nc\r\n");
  const ProgramResult result = run("evaluate " + (folder / "hyp").string() + " --reference " +
                                   (folder / "hyp").string() + " --metric chrf");
  EXPECT_EQ(result.code, 0);
  EXPECT_NE(result.error.find("2 lines with invalid UTF-8"), std::string::npos) << result.error;
  EXPECT_EQ(result.out.find("chrF2             100.00\n"), 0u) << result.out;
}

TEST(Evaluate, FileErrorsAreReportedInOneLine) {
  const TemporaryFolder folder;
  write_text(folder / "empty", "");
  const std::string empty = (folder / "empty").string(), none = (folder / "none").string();
  for (const auto& [arguments, message] :
       {std::pair(kEnglish + "german.ref", "german.ref has 20 lines but "),
        std::pair("evaluate " + empty + " --reference " + empty, "is empty"),
        std::pair("evaluate " + none + " --reference " + none, "No such file"),
        std::pair(kEnglish + "english.ref0 --against " + none, "No such file")}) {
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.code, 1) << arguments;
    EXPECT_NE(result.error.find(message), std::string::npos) << result.error;
    EXPECT_EQ(std::ranges::count(result.error, '\n'), 1) << result.error;
    EXPECT_TRUE(result.out.empty());
  }
}

TEST(Evaluate, ASeedWithoutBootstrapIsAWrongCall) {
  const ProgramResult result = run(kEnglish + "english.ref0 --seed 5");
  EXPECT_EQ(result.code, 2);
  EXPECT_NE(result.error.find("--seed has no effect without"), std::string::npos) << result.error;
  EXPECT_EQ(run(kEnglish + "english.ref0 --seed 5 --bootstrap 3").code, 0);
}

TEST(Evaluate, SaysWhatToInstallWhereMecabIsMissing) {
  for (const std::string tokenizer : {"ja-mecab", "ko-mecab"}) {
    const ProgramResult result = run(kEnglish + "english.ref0 --metric bleu --tokenize " +
                                     tokenizer + " --mecab-library /nowhere/libmecab.so.2");
    EXPECT_EQ(result.code, 1);
    EXPECT_TRUE(result.out.empty());
    EXPECT_EQ(std::ranges::count(result.error, '\n'), 1) << result.error;
    EXPECT_NE(result.error.find("--tokenize " + tokenizer + ": cannot load MeCab's library"),
              std::string::npos)
        << result.error;
    EXPECT_NE(result.error.find("Install MeCab"), std::string::npos) << result.error;
  }
}

TEST(Evaluate, WrongCallsExitWithTwo) {
  for (const std::string arguments :
       {"--metric wer", "--tokenize 14", "--ter-normalized", "--bootstrap 0", "--bootstrap x",
        "--mecab-library x", "--tokenize zh --mecab-dictionary x", "--seed -1",
        "--seed 9223372036854775808", "--sentence --bootstrap 10", "--sentence --against x",
        "--against", "--reference - -"}) {
    const ProgramResult result = run(kEnglish + "english.ref0 " + arguments);
    EXPECT_EQ(result.code, 2) << arguments;
    EXPECT_FALSE(result.error.empty()) << arguments;
  }
  EXPECT_EQ(run("evaluate").code, 2);
  EXPECT_EQ(run("evaluate " + kTexts + "english.hyp").code, 2);
}

}  // namespace
}  // namespace nunchi::testing
