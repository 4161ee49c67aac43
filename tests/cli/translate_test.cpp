// `nunchi translate`: output, messages and exit codes.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "nunchi/kernels/product.h"
#include "tests/cli/conversation.h"
#include "tests/cli/translate_command.h"

namespace nunchi::testing {
namespace {

using Json = nlohmann::json;

TEST_F(TranslateCommand, APictureDoesNotChangeTheOutput) {
  const std::string input = "the fox sees the dog\n\na dog\n";
  for (const std::string options : {"", "--json ", "--n-best 2 --beam-size 2 ", "--alignment "}) {
    const ProgramResult plain = translate(options, input),
                        drawn = translate(options + "--picture", input);
    EXPECT_EQ(drawn.code, 0) << drawn.error;
    EXPECT_EQ(drawn.out, plain.out);
    // One picture for each line with words.
    const std::size_t first = drawn.error.find("* max"), last = drawn.error.rfind("* max");
    EXPECT_NE(first, std::string::npos) << drawn.error;
    EXPECT_NE(first, last);
    EXPECT_EQ(drawn.error.find('\x1b'), std::string::npos);  // no colours in a file
  }
}

TEST_F(TranslateCommand, PrintsOneLineForEachLine) {
  const std::vector<std::string> texts = some_texts();
  std::string input;
  for (const std::string& text : texts) input += text + "\n";
  const ProgramResult result = translate("", input);
  ASSERT_EQ(result.code, 0) << result.error;
  const auto lines = lines_in(result.out);
  const auto translations = expected(texts);
  ASSERT_EQ(lines.size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(lines[i], translations[i][0].text);
  EXPECT_EQ(result.error,
            "nunchi: 1 line without words: empty output\n"
            "nunchi: 1 line with at least 5% unknown tokens: the model was not trained on such "
            "text\n");
  // Line endings and a byte order mark do not change the output.
  std::string windows = "\xEF\xBB\xBF";
  for (const std::string& text : texts) windows += text + "\r\n";
  windows.resize(windows.size() - 2);
  EXPECT_EQ(translate("", windows).out, result.out);
}

TEST_F(TranslateCommand, ResultsDoNotDependOnTheBatchSize) {
  if (!kernels::rows_are_independent()) {
    GTEST_SKIP() << "rows of a matrix product depend on the number of rows here";
  }
  std::string input;
  for (const std::string& text : some_texts()) input += text + "\n";
  const ProgramResult result = translate("", input);
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(translate("--batch-tokens 1", input).out, result.out);
  EXPECT_EQ(translate("--batch-sentences 2 --beam-size 1", input).out, result.out);
}

TEST_F(TranslateCommand, WarnsOfTranslationsThatAreUnlikelyForTheModel) {
  translation_->save(folder_.path());
  save_generation_config({.max_length = 9}, {}, folder_.path(),
                         TypicalScores{.median = -0.01, .low = -0.02});
  write_text(folder_ / "input", "a dog\n\nthe old fox\n");
  const std::string command = "translate " + folder_.path().string() + " --threads 1 --json";
  const ProgramResult result = run(command, "", (folder_ / "input").string());
  EXPECT_EQ(result.code, 0);
  EXPECT_TRUE(says(result.error,
                   "nunchi: 2 lines with a translation far less likely than those of the "
                   "validation data: the model may not have been trained on such text\n"))
      << result.error;
  const auto lines = lines_in(result.out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(Json::parse(lines[0]).at("unlikely"), true);
  EXPECT_EQ(Json::parse(lines[1]).at("unlikely"), false);
  // Without typical scores there is nothing to compare with.
  const ProgramResult unknown = translate("--json", "a dog\n");
  EXPECT_FALSE(says(unknown.error, "likely")) << unknown.error;
  EXPECT_EQ(Json::parse(unknown.out).at("unlikely"), false);
}

TEST_F(TranslateCommand, ABadLineNeverEndsTheJob) {
  const std::string input = std::string("\n \na\xFF\nb\xC3\n") + std::string("a\0b\n", 4) +
                            std::string((1 << 20) + 5, 'x') + "\na dog\n";
  const ProgramResult result = translate("--max-source-length 20", input);
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(lines_in(result.out).size(), 7u);
  EXPECT_EQ(lines_in(result.out)[0], "");
  EXPECT_EQ(lines_in(result.out)[6], expected({"a dog"})[0][0].text);
  EXPECT_EQ(result.error,
            "nunchi: 2 lines without words: empty output\n"
            "nunchi: 2 lines with invalid UTF-8: replaced by U+FFFD\n"
            "nunchi: 1 line too long: cut (see --max-source-length)\n"
            "nunchi: 3 lines with at least 5% unknown tokens: the model was not trained on such "
            "text\n");
}

TEST_F(TranslateCommand, SeveralModelsTranslateTogether) {
  const ProgramResult once = translate("--beam-size 2", "a dog\nthe old fox\n"),
                      twice = translate(model() + " --beam-size 2", "a dog\nthe old fox\n");
  ASSERT_EQ(twice.code, 0) << twice.error;
  EXPECT_EQ(twice.out, once.out);
  const TemporaryFolder other;
  SmallTranslation(letter_tokenizer()).save(other.path());
  expect_one_sentence(translate(other.path().string(), "a dog\n"), 1,
                      "cannot translate together: they have different target tokens. There are 310 "
                      "tokens in the first and 34 in the second.");
}

TEST_F(TranslateCommand, TermsAreInTheTranslations) {
  write_text(folder_ / "terms.tsv", "dog\tzebra\nold fox\tN-7\n");
  const std::string terms = "--terms " + (folder_ / "terms.tsv").string();
  const ProgramResult result = translate(terms, "the dog\na woman\nthe old fox\n");
  ASSERT_EQ(result.code, 0) << result.error;
  const auto lines = lines_in(result.out);
  EXPECT_TRUE(says(lines[0], "zebra")) << result.out;
  EXPECT_EQ(lines[1], expected({"a woman"})[0][0].text);
  EXPECT_TRUE(says(lines[2], "N-7")) << result.out;

  const ProgramResult marked =
      translate("--inline-terms", "a <term target=\"walk\">dog</term>\n<term>dog\n");
  ASSERT_EQ(marked.code, 0) << marked.error;
  EXPECT_TRUE(says(lines_in(marked.out)[0], "walk")) << marked.out;
  EXPECT_EQ(lines_in(marked.out)[1], expected({"<term>dog"})[0][0].text);
  EXPECT_TRUE(marked.error.starts_with(
      "nunchi: 1 line with <term> markup that cannot be read: translated as text\n"))
      << marked.error;

  expect_one_sentence(translate(terms + " --sample", "a dog\n"), 2,
                      "cannot be combined with --sample");
  write_text(folder_ / "terms.tsv", "dog zebra\n");
  expect_one_sentence(translate(terms, "a dog\n"), 1, "terms.tsv:1: a line of terms must be");
}

TEST_F(TranslateCommand, EmptyInputGivesEmptyOutput) {
  const ProgramResult result = translate("", "");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out + result.error, "");
}

TEST_F(TranslateCommand, NBestHasFourFields) {
  const ProgramResult result = translate("--n-best 3", "a dog\n\nthe fox\n");
  ASSERT_EQ(result.code, 0) << result.error;
  const auto lines = lines_in(result.out);
  ASSERT_EQ(lines.size(), 7u);  // an empty line has one translation
  const std::vector<std::string> ids = {"0", "0", "0", "1", "2", "2", "2"};
  const auto found = expected({"a dog", "", "the fox"}, {.search = {.beam_size = 3, .n_best = 3}});
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto fields = fields_of(lines[i]);
    ASSERT_EQ(fields.size(), 4u) << lines[i];
    EXPECT_EQ(fields[0], ids[i]);
    EXPECT_EQ(pattern_of(fields[2]),
              ids[i] == "1" ? "LogProbability= 0.0000" : "LogProbability= -0.0000");
    const std::size_t line = static_cast<std::size_t>(std::stoi(ids[i]));
    const Translation& one = found[line][line == 1 ? 0 : i % 4];
    EXPECT_EQ(fields[1], one.text);
    EXPECT_NEAR(std::stod(fields[3]), one.score, 1e-4);
  }
  EXPECT_EQ(lines[3], "1 |||  ||| LogProbability= 0.0000 ||| 0.0000");
}

TEST_F(TranslateCommand, AlignmentPairsSourceAndTargetWords) {
  const ProgramResult hard = translate("--alignment", "the old dog sleeps\n\n");
  ASSERT_EQ(hard.code, 0) << hard.error;
  const auto fields = fields_of(lines_in(hard.out)[0]);
  ASSERT_EQ(fields.size(), 3u) << hard.out;
  const std::size_t found = fields[1].find(" Alignment=");
  ASSERT_NE(found, std::string::npos) << fields[1];
  const std::string pairs = fields[1].substr(found + 11);
  std::istringstream words(pairs);
  int pair_count = 0;
  for (std::string pair; words >> pair; ++pair_count) {
    EXPECT_EQ(pattern_of(pair), "0-0") << pairs;
    EXPECT_LE(std::stoi(pair), 3) << pairs;
  }
  EXPECT_GT(pair_count, 0) << pairs;
  EXPECT_EQ(translate("--alignment hard", "the old dog sleeps\n\n").out, hard.out);

  const ProgramResult soft = translate("--alignment soft", "the old dog sleeps\n");
  ASSERT_EQ(soft.code, 0) << soft.error;
  const std::string all = fields_of(lines_in(soft.out)[0])[1];
  std::istringstream rows(all.substr(all.find("Alignment= ") + 11));
  int count = 0;
  for (std::string row; rows >> row; ++count) {
    std::istringstream weights(row);
    double sum = 0;
    int columns = 0;
    for (std::string weight; std::getline(weights, weight, ','); ++columns) {
      sum += std::stod(weight);
    }
    EXPECT_EQ(columns, 5);  // four words and </s>
    EXPECT_NEAR(sum, 1, 1e-3);
  }
  EXPECT_GT(count, 0);
}

TEST_F(TranslateCommand, WordScoresAddUp) {
  const ProgramResult result = translate("--word-scores", "the old dog\n");
  ASSERT_EQ(result.code, 0) << result.error;
  const auto fields = fields_of(lines_in(result.out)[0]);
  ASSERT_EQ(fields.size(), 3u) << result.out;
  std::istringstream features(fields[1]);
  std::string name;
  double log_probability = 0, sum = 0;
  features >> name >> log_probability;
  EXPECT_EQ(name, "LogProbability=");
  features >> name;
  EXPECT_EQ(name, "WordScores=");
  int words = 0;
  for (double score; features >> score; ++words) sum += score;
  EXPECT_GT(words, 0);
  EXPECT_NEAR(sum, log_probability, 1e-3);
}

TEST_F(TranslateCommand, TranslationsStartWithTheirPrefix) {
  const auto lines = lines_in(translate("--prefix", "a dog\tthe fox\na dog\n").out);
  EXPECT_EQ(lines[0].rfind("the fox", 0), 0u) << lines[0];
  EXPECT_EQ(lines[1], expected({"a dog"})[0][0].text);
}

TEST_F(TranslateCommand, SamplesDependOnTheSeed) {
  const auto sampled = [&](const std::string& options) {
    return translate("--sample --top-k 50 --temperature 1.5 " + options, "a dog\na dog\n").out;
  };
  EXPECT_EQ(sampled("--seed 5"), sampled("--seed 5"));
  EXPECT_NE(sampled("--seed 5"), sampled("--seed 6"));
  const auto lines = lines_in(sampled("--seed 5"));
  EXPECT_NE(lines[0], lines[1]);
}

TEST_F(TranslateCommand, WritesTheOutputFile) {
  const std::string path = (folder_ / "translated").string();
  write_text(path, "old content");
  const ProgramResult failed = run("translate " + model() + " --output " + path + " --input " +
                                   (folder_ / "missing").string());
  expect_one_sentence(failed, 1, "No such file");
  EXPECT_EQ(content(path), "old content");
  const ProgramResult result = translate("--output " + path, "a dog\nthe fox\n");
  EXPECT_EQ(result.code, 0) << result.error;
  EXPECT_TRUE(result.out.empty());
  EXPECT_EQ(content(path), translate("", "a dog\nthe fox\n").out);
  EXPECT_EQ(folder_.entry_count(), 2);  // no temporary file is left
  expect_one_sentence(translate("--output " + (folder_ / "no/such").string(), "a\n"), 1, "no/such");
}

TEST_F(TranslateCommand, TheOutputFileAppearsAtTheEnd) {
  const std::string path = (folder_ / "translated").string();
  Conversation conversation({"translate", model(), "--threads", "1", "--output", path});
  ASSERT_TRUE(conversation.write("a dog\n"));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(std::filesystem::exists(path));
  conversation.finish_writing();
  EXPECT_EQ(conversation.end().code, 0);
  EXPECT_EQ(content(path), expected({"a dog"})[0][0].text + "\n");
}

TEST_F(TranslateCommand, WrongCallsExitWithTwoAndPointToTheHelp) {
  for (const std::string options :
       {"--no-such-option", "--beam-size x", "--n-best 0", "--alignment soggy", "--threads -1",
        "--max-source-length 1", "--batch-tokens 0", "--input"}) {
    const ProgramResult result = translate(options, "a\n");
    expect_one_sentence(result, 2, "see 'nunchi translate --help'");
  }
  expect_one_sentence(run("translate"), 2, "MODEL is required; see 'nunchi translate --help'.");
  for (const auto& [options, because] :
       {std::pair{"--beam-size 0", "--beam-size must be a whole number from 1 to 4096"},
        {"--beam-size 2 --n-best 3", "n-best (3) cannot be larger than the beam size (2)"},
        {"--sample --beam-size 2", "exclude"},
        {"--sample --top-p 0", "top-p"},
        {"--sample --top-k -1", "top-k"},
        {"--sample --temperature 0", "temperature"},
        {"--sample --temperature nan", "temperature"},
        {"--top-p 0.5", "--top-p has no effect without --sample"},
        {"--top-k 3", "--top-k has no effect"},
        {"--temperature 1", "--temperature has no effect"},
        {"--seed -1", "--seed must be a whole number"},
        {"--seed 9223372036854775808", "--seed must be a whole number"},
        {"--alignment medium", "--alignment must be hard or soft, not 'medium'"},
        {"--normalize -1", "normalize"},
        {"--min-length 9 --max-length 8", "minimum length"},
        {"--device tpu", "unknown device 'tpu'"},
        {"--device cuda:x", "has no number after the colon"},
        {"--precision f8", "--precision must be f32, bf16 or int8, not 'f8'"},
        {"--precision bf16", "the CPU computes in f32"},
        {"--no-repeat-ngram -1", "--no-repeat-ngram must be a whole number"}}) {
    expect_one_sentence(translate(options, "a\n"), 2, because);
  }
}

TEST_F(TranslateCommand, AMissingOrBrokenModelIsReportedInOneLine) {
  expect_one_sentence(run("translate " + (folder_ / "nowhere").string()), 1,
                      "there is no such folder");
  expect_one_sentence(run("translate " + folder_.path().string()), 1, "has no config.json");
  const std::filesystem::path copy = folder_ / "copy";
  std::filesystem::copy(model_folder_->path(), copy);
  write_text(copy / "generation_config.json", "{\"min_length\": 9, \"max_length\": 8}");
  expect_one_sentence(run("translate " + copy.string()), 1,
                      "generation_config.json: the maximum length (8) must be");
  std::filesystem::remove(copy / "generation_config.json");
  std::filesystem::remove(copy / "tokenizer.spm");
  expect_one_sentence(run("translate " + copy.string()), 1, "has no tokenizer");
}

TEST_F(TranslateCommand, AFolderAsOutputIsRefusedBeforeTheModelIsRead) {
  expect_one_sentence(
      run("translate " + (folder_ / "nowhere").string() + " --output " + folder_.path().string()),
      1, "Is a directory");
  EXPECT_TRUE(folder_.empty());
}

TEST_F(TranslateCommand, WritesToDevicesAndThroughLinks) {
  std::filesystem::create_symlink("real", folder_ / "link");
  write_text(folder_ / "real", "old");
  std::filesystem::permissions(folder_ / "real", std::filesystem::perms(0600));
  const ProgramResult result = translate("--output " + (folder_ / "link").string(), "a dog\n");
  EXPECT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(content(folder_ / "real"), expected({"a dog"})[0][0].text + "\n");
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
  EXPECT_EQ(std::filesystem::status(folder_ / "real").permissions(), std::filesystem::perms(0600));
  EXPECT_EQ(translate("--output /dev/null", "a dog\n").code, 0);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_EQ(translate("--output /dev/stdout", "a dog\n").out, content(folder_ / "real"));
}

TEST_F(TranslateCommand, LeavesNoFileWhenStopped) {
  for (const int signal : {SIGTERM, SIGINT}) {
    write_text(folder_ / "out", "before");
    Conversation conversation(
        {"translate", model(), "--threads", "1", "--output", folder_ / "out"});
    ASSERT_TRUE(conversation.write("a dog\n"));
    while (folder_.entry_count() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    conversation.send(signal);
    const Conversation::End end = conversation.end();
    EXPECT_EQ(end.code, 128 + signal);
    EXPECT_EQ(end.error, "nunchi: stopped; " + (folder_ / "out").string() + " is unchanged.\n");
    EXPECT_EQ(content(folder_ / "out"), "before");
    EXPECT_EQ(folder_.entry_count(), 1);
  }
}

TEST_F(TranslateCommand, WaitsForNonBlockingInput) {
  Conversation conversation({"translate", model(), "--threads", "1"},
                            Conversation::Input::non_blocking);
  for (int i = 0; i < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ASSERT_TRUE(conversation.write("a dog\n"));
    EXPECT_EQ(conversation.read_line(), expected({"a dog"})[0][0].text);
  }
  conversation.finish_writing();
  EXPECT_EQ(conversation.end().code, 0);
}

TEST_F(TranslateCommand, AnswersEachLineBeforeTheNext) {
  Conversation conversation({"translate", model(), "--threads", "1"});
  for (const std::string text : {"a dog", "the fox", "", "zebra", "a dog"}) {
    ASSERT_TRUE(conversation.write(text + "\n"));
    EXPECT_EQ(conversation.read_line(), text.empty() ? "" : expected({text})[0][0].text);
  }
  conversation.finish_writing();
  EXPECT_EQ(conversation.end().code, 0);
}

TEST_F(TranslateCommand, EndsQuietlyWhenThePipeIsClosed) {
  Conversation conversation({"translate", model(), "--threads", "1"});
  ASSERT_TRUE(conversation.write("a dog\n"));
  EXPECT_NE(conversation.read_line(), "(no line)");
  conversation.stop_reading();
  // The program detects the closed pipe when it writes; until then it reads more input.
  while (conversation.write("a dog\n")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const Conversation::End end = conversation.end();
  EXPECT_EQ(end.code, 0);
  EXPECT_EQ(end.error, "");
}

TEST_F(TranslateCommand, MemoryDoesNotGrowWithTheInput) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer delays the reuse of freed memory";
#endif
  const auto peak_of = [&](int lines) {
    std::string input;
    for (int i = 0; i < lines; ++i) input += i % 3 == 0 ? "a dog\n" : "the old fox\n";
    write_text(folder_ / "many", input);
    Conversation conversation({"translate", model(), "--threads", "1", "--max-length", "1",
                               "--input", (folder_ / "many").string(), "--output",
                               (folder_ / "out").string()});
    const Conversation::End end = conversation.end();
    EXPECT_EQ(end.code, 0) << end.error;
    EXPECT_EQ(std::ranges::count(content(folder_ / "out"), '\n'), lines);
    return end.peak_kib;
  };
  // The number of batches in flight varies, and with it some MiB; storing 75,000 more lines would
  // take more than that.
  const long few = peak_of(5000), many = peak_of(80000);
  EXPECT_LT(many, few + 16384) << few << " KiB for 5,000 lines";
}

TEST_F(TranslateCommand, JsonHasOneObjectForEachLine) {
  const ProgramResult result = translate("--json", "a dog\n\nthe \"fox\"\n");
  ASSERT_EQ(result.code, 0) << result.error;
  const auto lines = lines_in(result.out);
  ASSERT_EQ(lines.size(), 3u);
  const auto found = expected({"a dog", "", "the \"fox\""});
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Json json = Json::parse(lines[i]);
    EXPECT_EQ(json.at("id"), i);
    EXPECT_EQ(json.at("text"), found[i][0].text);
    EXPECT_NEAR(json.at("score"), found[i][0].score, 1e-5);
    EXPECT_NEAR(json.at("log_probability"), found[i][0].log_probability, 1e-5);
    EXPECT_EQ(json.at("unlikely"), false);
    EXPECT_EQ(json.size(), 6u) << lines[i];
  }
  EXPECT_EQ(Json::parse(lines[0]).at("unknown"), 0);
  EXPECT_GT(Json::parse(lines[2]).at("unknown"), 0);
}

TEST_F(TranslateCommand, JsonHasWordScoresAndAlignmentOfEachTranslation) {
  const std::string options = "--json --n-best 3 --word-scores --alignment ";
  const Json hard = Json::parse(lines_in(translate(options, "the old dog\n").out).at(0));
  const Json soft = Json::parse(lines_in(translate(options + "soft", "the old dog\n").out).at(0));
  EXPECT_FALSE(hard.contains("text"));
  ASSERT_EQ(hard.at("n_best").size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const Json& one = hard.at("n_best").at(i);
    EXPECT_EQ(one.at("tokens").size(), one.at("token_scores").size());
    EXPECT_EQ(one.at("words").size(), one.at("word_scores").size());
    double sum = 0;
    for (const double score : one.at("word_scores")) sum += score;
    EXPECT_NEAR(sum, one.at("log_probability"), 1e-4);
    for (const Json& pair : one.at("alignment")) {
      EXPECT_LT(pair.at(0).get<std::size_t>(), 3u);
      EXPECT_LT(pair.at(1).get<std::size_t>(), one.at("words").size());
    }
    const Json& weights = soft.at("n_best").at(i).at("alignment");
    ASSERT_EQ(weights.size(), one.at("words").size());
    for (const Json& row : weights) {
      ASSERT_EQ(row.size(), 4u);  // three words and </s>
      double total = 0;
      for (const double weight : row) total += weight;
      EXPECT_NEAR(total, 1, 1e-4);
    }
  }
}

TEST_F(TranslateCommand, WarnsOfLinesThatTheModelDoesNotKnow) {
  const ProgramResult result =
      translate("--json", "the old fox sees a dog and jumps over the tree #\n눈치 보는 개\n");
  EXPECT_EQ(result.error,
            "nunchi: 1 line with at least 5% unknown tokens: the model was not trained on such "
            "text\n");
  const auto lines = lines_in(result.out);
  EXPECT_LT(Json::parse(lines.at(0)).at("unknown"), 0.05);
  EXPECT_GT(Json::parse(lines.at(0)).at("unknown"), 0);
  EXPECT_GT(Json::parse(lines.at(1)).at("unknown"), 0.8);
}

TEST_F(TranslateCommand, TheModelCanBeGivenAsAnOption) {
  write_text(folder_ / "input", "a dog\n");
  const std::string input = (folder_ / "input").string();
  const ProgramResult result = translate("", "a dog\n");
  EXPECT_EQ(run("translate -m " + model() + " --threads 1 -i " + input).out, result.out);
  EXPECT_EQ(run("translate --threads 1 -i - --model " + model(), "", input).out, result.out);
  EXPECT_EQ(run("info " + model() + " -m " + model()).code, 2);
  EXPECT_EQ(run("--parse-only train -c a.yaml").code, 0);
  EXPECT_EQ(run("--parse-only score -m folder source target").code, 0);
}

TEST_F(TranslateCommand, AHuggingFaceFolderIsNamed) {
  write_text(folder_ / "config.json",
             R"({"architectures": ["MarianMTModel"], "d_model": 512, "dropout": 0.1,
                 "model_type": "marian", "bad_words_ids": [[58100]], "id2label": {"0": "A"}})");
  expect_one_sentence(run("translate " + folder_.path().string()), 1,
                      "describes a Hugging Face model of type 'marian'. This version of Nunchi");
  write_text(folder_ / "config.json", R"({"architectures": ["GPT2LMHeadModel"]})");
  expect_one_sentence(run("info " + folder_.path().string()), 1, "of type 'GPT2LMHeadModel'.");
}

}  // namespace
}  // namespace nunchi::testing
