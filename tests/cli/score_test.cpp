// `nunchi score`: output, messages and exit codes.
#include <nlohmann/json.hpp>

#include "nunchi/inference/n_best_list.h"
#include "nunchi/inference/scorer.h"
#include "tests/cli/translate_command.h"
#include "tests/errors.h"

namespace nunchi::testing {
namespace {

using Json = nlohmann::json;

class ScoreCommand : public TranslateCommand {
 protected:
  ProgramResult score(const std::string& sources, const std::string& targets,
                      const std::string& options = "") {
    write_text(folder_ / "src", sources);
    write_text(folder_ / "tgt", targets);
    return run("score " + model() + " " + (folder_ / "src").string() + " " +
               (folder_ / "tgt").string() + " --threads 1 " + options);
  }
};

TEST_F(ScoreCommand, PrintsALogProbabilityForEachPair) {
  const ProgramResult result = score("a dog\nthe fox\n\n", "a fox\n\na dog\n");
  ASSERT_EQ(result.code, 0) << result.error;
  const auto lines = lines_in(result.out);
  ASSERT_EQ(lines.size(), 3u);
  for (const std::string& line : lines) {
    EXPECT_EQ(pattern_of(line), "-0.0000");
  }
  EXPECT_EQ(pattern_of(result.error), "nunchi: 0 pairs, 0 target tokens, perplexity 0.0000\n");
  EXPECT_EQ(result.error.rfind("nunchi: 3 pairs", 0), 0u) << result.error;
  EXPECT_EQ(lines_in(score("a dog\n", "a fox\n").out)[0], lines[0]);
}

TEST_F(ScoreCommand, WordScoresNameTheTokens) {
  const ProgramResult result = score("a dog\n", "the zebra\n", "--word-scores");
  ASSERT_EQ(result.code, 0) << result.error;
  std::istringstream line(lines_in(result.out).at(0));
  std::string field, pieces;
  std::getline(line, field, '\t');
  const double total = std::stod(field);
  double sum = 0;
  while (std::getline(line, field, '\t')) {
    pieces += field.substr(0, field.find(' '));
    sum += std::stod(field.substr(field.find(' ') + 1));
  }
  EXPECT_EQ(pieces, "▁the▁zebra</s>");
  EXPECT_NEAR(sum, total, 1e-3);
}

TEST_F(ScoreCommand, ReportsErrors) {
  EXPECT_EQ(score("a\nb\n", "a\n").code, 1);
  expect_one_sentence(run("score " + model() + " /no/src /no/tgt"), 1, "/no/src");
  expect_one_sentence(run("score " + model() + " x"), 2, "see 'nunchi score --help'");
  expect_one_sentence(score("a\n", "a\n", "--max-length 1"), 2, "see 'nunchi score --help'");
  expect_one_sentence(score("a\n", "a\n", "--nonsense"), 2, "--nonsense");
  EXPECT_NE(score("the old fox\n", "a\n", "--max-length 3").error.find("1 pair too long: cut"),
            std::string::npos);
  EXPECT_EQ(score("", "").error, "nunchi: nothing to score: the input is empty\n");
}

TEST_F(ScoreCommand, ReadsStandardInput) {
  const ProgramResult result = score("a dog\nthe fox\n", "a fox\nthe dog\n");
  const std::string source = (folder_ / "src").string(), target = (folder_ / "tgt").string();
  EXPECT_EQ(run("score " + model() + " --threads 1 - " + target, "", source).out, result.out);
  EXPECT_EQ(run("score " + model() + " --threads 1 " + source + " -", "", target).out, result.out);
  expect_one_sentence(run("score " + model() + " - -"), 2, "only one file can be '-'");
}

TEST_F(ScoreCommand, JsonHasOneObjectForEachPair) {
  const std::string sources = "a dog\n눈치\n", targets = "the fox\n치눈\n";
  const auto plain = lines_in(score(sources, targets).out);
  const auto lines = lines_in(score(sources, targets, "--json").out);
  ASSERT_EQ(lines.size(), 2u);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Json json = Json::parse(lines[i]);
    EXPECT_EQ(json.at("id"), i);
    EXPECT_NEAR(json.at("log_probability"), std::stod(plain.at(i)), 1e-4);
    EXPECT_EQ(json.at("cut"), false);
    EXPECT_EQ(json.size(), 5u) << lines[i];
  }
  EXPECT_EQ(Json::parse(lines[0]).at("unknown"), 0);
  EXPECT_GT(Json::parse(lines[1]).at("unknown"), 0.8);
  EXPECT_NE(score(sources, targets).error.find("nunchi: 1 pair with at least 5% unknown tokens"),
            std::string::npos);
  const Json words =
      Json::parse(lines_in(score("a dog\n", "the zebra\n", "--json --word-scores").out).at(0));
  EXPECT_EQ(words.at("words"), (Json{"the", "zebra", "</s>"}));
  EXPECT_EQ(words.at("token_count"), words.at("tokens").size());
  EXPECT_EQ(words.at("word_scores").size(), 3u);
}

TEST_F(ScoreCommand, AlignsTheWordsOfAPair) {
  // The attention of a translation is that of the same text when it is scored.
  const auto translations = expected({"the old dog"}, {.alignment = true});
  const std::string& text = translations[0][0].text;
  const PairScore scored = Scorer(translation_->context, *translation_->model,
                                  translation_->tokenizers, {.alignment = true})
                               .score(std::vector<TextPair>{{"the old dog", text}})[0];
  const AttentionMatrix& attention = translations[0][0].attention;
  EXPECT_EQ(scored.attention.sources, attention.sources);
  EXPECT_EQ(scored.attention.weights.size(),
            scored.pieces.size() * scored.attention.sources.size());
  if (scored.pieces == translations[0][0].pieces) {
    EXPECT_LT(largest_difference(scored.attention.weights, attention.weights), 1e-5);
  }
  const ProgramResult hard = score("the old dog\n\n", "a fox\na fox\n", "--alignment");
  ASSERT_EQ(hard.code, 0) << hard.error;
  const auto lines = lines_in(hard.out);
  EXPECT_EQ(pattern_of(lines.at(0)), "-0.0000\t0-0 0-0") << hard.out;
  EXPECT_EQ(pattern_of(lines.at(1)), "-0.0000\t");  // no source word
  const auto both = lines_in(score("the old dog\n", "a fox\n", "--alignment --word-scores").out);
  EXPECT_EQ(both.at(0).find(lines[0] + "\t\u2581a "), 0u) << both.at(0);
  const Json json =
      Json::parse(lines_in(score("the old dog\n", "a fox\n", "--alignment --json").out).at(0));
  EXPECT_EQ(json.at("alignment").size(), 2u);
  EXPECT_EQ(json.at("alignment").at(1).at(1), 1);
}

TEST_F(ScoreCommand, RescoresAnNBestList) {
  write_text(folder_ / "src", "a dog\nthe fox\nthe old tree\n");
  write_text(folder_ / "list",
             "0 ||| a fox ||| LM= -1.5 ||| -7\n"
             "0 ||| the dog and the dog ||| LM= -2.5 ||| -8\n"
             "0 ||| zebra\n"
             "2 ||| a tree |||  ||| -1 ||| 0=0\n");
  const std::string call = "score " + model() + " " + (folder_ / "src").string() + " --n-best " +
                           (folder_ / "list").string() + " --threads 1 ";
  const ProgramResult kept = run(call + "--normalize 1");
  ASSERT_EQ(kept.code, 0) << kept.error;
  EXPECT_EQ(kept.error.find("nunchi: 4 pairs, "), 0u) << kept.error;
  const auto lines = lines_in(kept.out);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(pattern_of(lines[0]), "0 ||| a fox ||| LM= -0.0 Score= -0.0000 ||| -0.0000");
  EXPECT_EQ(pattern_of(lines[2]), "0 ||| zebra ||| Score= -0.0000 ||| -0.0000");
  EXPECT_EQ(lines[3].find("2 ||| a tree ||| Score= -"), 0u) << lines[3];
  const auto pairs = score("a dog\na dog\na dog\nthe old tree\n",
                           "a fox\nthe dog and the dog\nzebra\na tree\n", "--json");
  const auto wanted = lines_in(pairs.out);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Json json = Json::parse(wanted.at(i));
    const double log_probability = json.at("log_probability"), tokens = json.at("token_count");
    const auto fields = fields_of(lines[i]);
    EXPECT_NEAR(std::stod(fields[2].substr(fields[2].find("Score= ") + 7)), log_probability, 1e-4);
    EXPECT_NEAR(std::stod(fields[3]), log_probability / tokens, 1e-4);
  }
  write_text(folder_ / "src", "a dog\nthe fox\nthe old tree\n");
  auto sorted = lines_in(run(call + "--normalize 1 --sort --n-best-feature Nunchi").out);
  ASSERT_EQ(sorted.size(), 4u);
  double previous = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto fields = fields_of(sorted[i]);
    EXPECT_EQ(fields[0], "0");
    EXPECT_NE(fields[2].find("Nunchi= "), std::string::npos);
    EXPECT_LE(std::stod(fields[3]), previous);
    previous = std::stod(fields[3]);
  }
  const std::string piped = "score " + model() + " " + (folder_ / "src").string() +
                            " --n-best - --normalize 1 --threads 1";
  EXPECT_EQ(run(piped, "", (folder_ / "list").string()).out, kept.out);
}

TEST_F(ScoreCommand, RefusesABadNBestList) {
  const std::string list = (folder_ / "list").string();
  write_text(folder_ / "src", "a dog\nthe fox\n");
  const std::string call =
      "score " + model() + " " + (folder_ / "src").string() + " --n-best " + list;
  for (const auto& [lines, message] :
       {std::pair{"0 ||| a\n2 ||| b\n", ":2: there is no sentence 2: "},
        {"1 ||| a\n0 ||| b\n", ":2: sentence 0 follows sentence 1; ids must ascend."},
        {"a dog\n", ":1: an n-best line is 'id ||| text ||| features ||| score', not 'a dog'."},
        {"x ||| a\n", ":1: 'x' is not the number of a source line"},
        {"-1 ||| a\n", ":1: '-1' is not the number of a source line"},
        {" ||| a\n", ":1: '' is not the number of a source line"}}) {
    write_text(list, lines);
    expect_one_sentence(run(call), 1, list + message);
  }
  for (const auto& [options, message] :
       {std::pair{" x", "leave TGT out"},
        {" --json", "--n-best excludes"},
        {" --alignment", "--n-best excludes"},
        {" --n-best-feature 'a b'", "--n-best-feature must be a name without"}}) {
    expect_one_sentence(run(call + options), 2, message);
  }
  for (const char* option : {"--sort", "--normalize 1", "--n-best-feature X"}) {
    expect_one_sentence(score("a\n", "a\n", option), 2, "has no effect without --n-best.");
  }
}

TEST(NBestList, FieldsMayBeMissingOrUnspaced) {
  const NBestEntry entry = parse_n_best("12|||a  b||| F= 1 |||-2 ||| 0-0", "here");
  EXPECT_EQ(entry.id, 12);
  EXPECT_EQ(entry.text, "a  b");
  EXPECT_EQ(entry.features, "F= 1");
  EXPECT_EQ(entry.score, "-2");
  EXPECT_EQ(to_text(entry), "12 ||| a  b ||| F= 1 ||| -2\n");
  EXPECT_EQ(parse_n_best("0 |||", "here").text, "");
  EXPECT_EQ(error_of([] { parse_n_best("9999999999999999999999 ||| a", "here"); }),
            "here: '9999999999999999999999' is not the number of a source line, counted from 0.");
}

}  // namespace
}  // namespace nunchi::testing
