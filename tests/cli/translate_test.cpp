// `nunchi translate` and `nunchi score`: output, messages and exit codes.
#include <algorithm>
#include <sstream>

#include "nunchi/decoding/generation_config.h"
#include "nunchi/kernels/product.h"
#include "tests/cli/conversation.h"
#include "tests/cli/program.h"
#include "tests/inference/small_translation.h"

namespace nunchi::testing {
namespace {

std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = line.find(" ||| ", begin);
    fields.push_back(line.substr(begin, end - begin));
    if (end == line.npos) return fields;
    begin = end + 5;
  }
}

// The text with one zero for every whole number and decimal: "-12.3456" becomes "-0.0000".
std::string pattern_of(const std::string& text) {
  std::string pattern;
  bool decimals = false;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) decimals = c == '.' && pattern.ends_with('0');
    if (!digit || decimals || !pattern.ends_with('0')) pattern += digit ? '0' : c;
  }
  return pattern;
}

void expect_one_sentence(const ProgramResult& result, int code, const std::string& because) {
  EXPECT_EQ(result.code, code) << result.error;
  EXPECT_EQ(result.error.rfind("nunchi: ", 0), 0u) << result.error;
  EXPECT_NE(result.error.find(because), std::string::npos) << result.error;
  EXPECT_EQ(std::ranges::count(result.error, '\n'), 1) << result.error;
  EXPECT_TRUE(result.out.empty()) << result.out;
}

// All tests of this file share a model folder; each test has its own temporary folder.
class TranslateCommand : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    translation_ = new SmallTranslation;
    model_folder_ = new TemporaryFolder;
    translation_->save(model_folder_->path());
    save_generation_config({.max_length = 9}, {}, model_folder_->path());
  }
  static void TearDownTestSuite() {
    delete model_folder_;
    delete translation_;
  }

  static std::string model() { return model_folder_->path().string(); }

  ProgramResult translate(const std::string& options, const std::string& input) {
    write_text(folder_ / "input", input);
    return run("translate " + model() + " --threads 1 " + options, "",
               (folder_ / "input").string());
  }
  // The library's translations of each line.
  static std::vector<Translations> expected(const std::vector<std::string>& texts,
                                            TranslatorOptions options = {}) {
    options.search.max_length = 9;
    return translation_->translator(options).translate(lines_of(texts));
  }

  inline static SmallTranslation* translation_ = nullptr;
  inline static TemporaryFolder* model_folder_ = nullptr;
  TemporaryFolder folder_;
};

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
  EXPECT_EQ(result.error, "nunchi: 1 line without words: empty output\n");
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
            "nunchi: 1 line too long: cut (see --max-source-length)\n");
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
  EXPECT_EQ(marked.error,
            "nunchi: 1 line with <term> markup that cannot be read: translated as text\n");

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
        {"--precision f8", "--precision must be f32 or bf16, not 'f8'"},
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

}  // namespace
}  // namespace nunchi::testing
