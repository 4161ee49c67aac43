// Commands with a BERT model: train, fill, embed, classify.
#include <array>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.h"
#include "tests/errors.h"
#include "tests/support.h"

namespace nunchi::testing {
namespace {

using Json = nlohmann::json;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The models are trained once for all tests of this file.
class BertProgram : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    // Lines count from any start, "eins zwei drei vier …", so neighbours determine a masked word.
    const std::vector<std::string> words = {"eins", "zwei", "drei", "vier", "fünf", "sechs"};
    std::string text, labelled;
    for (std::size_t i = 0; i < 240; ++i) {
      std::string line;
      for (std::size_t w = 0; w < 4 + i % 5; ++w) {
        line += (line.empty() ? "" : " ") + words[(i + w) % words.size()];
      }
      text += line + "\n";
      const bool first = i % 2 == 0;
      labelled += (first ? line : words[i % 6] + " " + words[i % 6]) + "\t" +
                  (first ? "counts" : "repeats") + "\n";
      if (i == 39) {
        write_text(*folder_ / "valid.txt", text);
        write_text(*folder_ / "valid.tsv", labelled);
      }
    }
    write_text(*folder_ / "train.txt", text);
    write_text(*folder_ / "train.tsv", labelled);
    write_text(*folder_ / "bert.yaml", config("bert", "{text: train.txt}", "{text: valid.txt}", R"(
training: {batch_tokens: 400, max_steps: 250, schedule: {learning_rate: 0.003, warmup: 20}}
tokenizer: {vocabulary: 48, byte_fallback: false}
validation: {every: 125}
)"));
    write_text(*folder_ / "labels.yaml", config("labels", "{tsv: train.tsv}", "{tsv: valid.tsv}",
                                                R"(
training: {objective: classification, batch_tokens: 400, max_steps: 60,
           schedule: {learning_rate: 0.001, warmup: 10}}
validation: {every: 30, metric: accuracy}
)") + "initialize_from: " + path("bert") + "\n");
    bert_ = new ProgramResult(run("train " + path("bert.yaml")));
    labels_ = new ProgramResult(run("train " + path("labels.yaml")));
  }
  static void TearDownTestSuite() {
    delete bert_;
    delete labels_;
    delete folder_;
  }

  static std::string path(const std::string& name) { return (*folder_ / name).string(); }
  static std::string config(const std::string& output, const std::string& train,
                            const std::string& validation, const std::string& rest) {
    return "output: " + path(output) +
           "\nseed: 3\nmodel: {family: bert, layers: 2, width: 48, heads: 2, feed_forward: 96, "
           "max_positions: 32, dropout: 0, attention_dropout: 0}\ndata: {root: " +
           folder_->path().string() + ", max_length: 30, train: " + train +
           ", validation: " + validation + "}\n" + rest +
           "checkpoints: {every: 100, keep_best: 2, average: 1}\n";
  }
  static ProgramResult answer(const std::string& command, const std::string& input) {
    write_text(*folder_ / "input", input);
    return run(command, "", path("input"));
  }

  static TemporaryFolder* folder_;
  static ProgramResult *bert_, *labels_;
};
TemporaryFolder* BertProgram::folder_ = nullptr;
ProgramResult* BertProgram::bert_ = nullptr;
ProgramResult* BertProgram::labels_ = nullptr;

TEST_F(BertProgram, LearnsAndReportsItsAccuracy) {
  ASSERT_EQ(bert_->code, 0) << bert_->error;
  EXPECT_TRUE(says(bert_->error, "accuracy ")) << bert_->error;
  double accuracy = 0;
  for (const std::string& line : lines_of(content(*folder_ / "bert/log.jsonl"))) {
    const Json json = Json::parse(line);
    if (json.contains("validation/accuracy")) accuracy = json["validation/accuracy"];
  }
  EXPECT_GT(accuracy, 0.8);
  EXPECT_TRUE(says(content(*folder_ / "bert/checkpoints/step-250/config.yaml"), "[MASK]"));
}

TEST_F(BertProgram, APictureDoesNotChangeTheOutput) {
  write_text(*folder_ / "masks.txt", "eins [MASK] drei\n\nno mask\nvier [MASK] [MASK] eins\n");
  const ProgramResult plain = run("fill " + path("bert"), "", path("masks.txt")),
                      drawn = run("fill --picture " + path("bert"), "", path("masks.txt"));
  EXPECT_EQ(drawn.code, 0) << drawn.error;
  EXPECT_EQ(drawn.out, plain.out);
  EXPECT_NE(drawn.error.find("* max"), std::string::npos) << drawn.error;
  EXPECT_NE(drawn.error.find("█"), std::string::npos) << drawn.error;
}

TEST_F(BertProgram, FillsInMasks) {
  ASSERT_EQ(bert_->code, 0) << bert_->error;
  const ProgramResult result = answer("fill " + path("bert") + " --top 2",
                                      "eins zwei [MASK] vier fünf\n\nzwei drei vier\n"
                                      "[MASK] zwei drei [MASK] fünf\n");
  EXPECT_EQ(result.code, 0) << result.error;
  const std::vector<std::string> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 4u) << result.out;
  EXPECT_TRUE(lines[0].starts_with("eins zwei drei vier fünf\t▁drei ")) << lines[0];
  EXPECT_TRUE(says(lines[0], " | "));
  EXPECT_EQ(lines[1], "");
  EXPECT_EQ(lines[2], "zwei drei vier");
  EXPECT_TRUE(lines[3].starts_with("eins zwei drei vier fünf\t▁eins ")) << lines[3];
  EXPECT_TRUE(says(lines[3], "\t▁vier ")) << lines[3];
  EXPECT_TRUE(says(result.error, "1 line without words: empty output"));
  EXPECT_TRUE(says(result.error, "1 line without [MASK] left unchanged"));

  const ProgramResult json =
      answer("fill " + path("bert") + " --json --top 3", "eins [MASK] drei vier\n");
  const Json object = Json::parse(json.out);
  EXPECT_EQ(object["text"], "eins zwei drei vier");
  ASSERT_EQ(object["masks"].size(), 1u);
  ASSERT_EQ(object["masks"][0].size(), 3u);
  EXPECT_EQ(object["masks"][0][0]["piece"], "▁zwei");
  EXPECT_EQ(object["masks"][0][0]["text"], "zwei");
  EXPECT_GT(object["masks"][0][0]["probability"], 0.5);
}

TEST_F(BertProgram, LinesAreFilledIndependentlyAndBadLinesAreCounted) {
  ASSERT_EQ(bert_->code, 0) << bert_->error;
  std::string longer = "eins [MASK]";
  for (int i = 0; i < 100; ++i) longer += " zwei";
  const std::string invalid = "eins \xFF [MASK]";
  const ProgramResult together =
      answer("fill " + path("bert") + " --batch-tokens 40",
             "eins [MASK] drei\n" + longer + "\n" + invalid + "\n[MASK]\n");
  EXPECT_EQ(together.code, 0);
  EXPECT_TRUE(
      says(together.error, "1 line too long: only the beginning was read (see --max-length)"))
      << together.error;
  EXPECT_TRUE(says(together.error, "1 line with invalid UTF-8"));
  const std::vector<std::string> lines = lines_of(together.out);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(answer("fill " + path("bert"), "eins [MASK] drei\n").out, lines[0] + "\n");
  EXPECT_EQ(answer("fill " + path("bert"), "[MASK]").out, lines[3] + "\n");
}

TEST_F(BertProgram, AnOverlongLineIsReturnedWhole) {
  ASSERT_EQ(bert_->code, 0) << bert_->error;
  std::string middle;
  for (int i = 0; i < 100; ++i) middle += " zwei";
  const ProgramResult result =
      answer("fill " + path("bert") + " --top 1", "eins\n[MASK] zwei" + middle + " [MASK] drei\n" +
                                                      middle.substr(1) + " [MASK]\neins [MASK]" +
                                                      middle + "\n");
  EXPECT_EQ(result.code, 0) << result.error;
  const std::vector<std::string> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 4u) << result.out;
  // The first mask is filled in; the second is beyond the 32 positions and is left unchanged.
  EXPECT_FALSE(lines[1].starts_with("[MASK]")) << lines[1];
  EXPECT_TRUE(says(lines[1], middle + " [MASK] drei\t▁")) << lines[1];
  EXPECT_EQ(std::count(lines[1].begin(), lines[1].end(), '\t'), 1) << lines[1];
  EXPECT_EQ(lines[2], middle.substr(1) + " [MASK]");
  EXPECT_TRUE(says(lines[3], middle + "\t")) << lines[3];
  EXPECT_TRUE(says(result.error, "3 lines too long: only the beginning was read")) << result.error;
  EXPECT_TRUE(says(result.error, "[MASK] beyond --max-length was not filled in, in line 2, 3\n"))
      << result.error;
  EXPECT_TRUE(says(result.error, "1 line without [MASK] left unchanged")) << result.error;
}

TEST_F(BertProgram, PrintsEmbeddings) {
  ASSERT_EQ(bert_->code, 0) << bert_->error;
  const auto vectors = [](const std::string& out) {
    std::vector<std::vector<double>> all;
    for (const std::string& line : lines_of(out)) {
      std::istringstream numbers(line);
      all.emplace_back(std::istream_iterator<double>(numbers), std::istream_iterator<double>());
    }
    return all;
  };
  const auto dot = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  const std::string input = "eins zwei drei vier\n\nzwei drei vier\neins zwei drei vier\n";
  const ProgramResult plain = answer("embed " + path("bert"), input);
  EXPECT_EQ(plain.code, 0) << plain.error;
  EXPECT_TRUE(says(plain.error, "1 line without words: a vector of zeros"));
  for (const char* pooling : {"mean", "first"}) {
    const auto found =
        vectors(answer("embed " + path("bert") + " --normalize --pooling " + pooling, input).out);
    ASSERT_EQ(found.size(), 4u);
    for (const auto& vector : found) EXPECT_EQ(vector.size(), 48u);
    EXPECT_NEAR(dot(found[0], found[0]), 1, 1e-5);
    EXPECT_EQ(dot(found[1], found[1]), 0);
    EXPECT_EQ(found[0], found[3]);
    EXPECT_NE(found[0], found[2]);
  }
  const Json json = Json::parse(answer("embed " + path("bert") + " --json", "eins zwei\n").out);
  EXPECT_EQ(json["text"], "eins zwei");
  EXPECT_EQ(json["vector"].size(), 48u);
  EXPECT_EQ(answer("embed " + path("bert") + " --pooling last", "x\n").code, 2);
}

TEST_F(BertProgram, ClassifiesAfterFineTuning) {
  ASSERT_EQ(labels_->code, 0) << labels_->error;
  EXPECT_TRUE(says(labels_->error, "classifier.dense.weight")) << labels_->error;
  EXPECT_TRUE(says(labels_->error, "accuracy 100.00 %")) << labels_->error;
  const Json info = Json::parse(run("info --json " + path("labels")).out);
  EXPECT_EQ(info["config"]["labels"], (Json{"counts", "repeats"}));
  const std::string input = "eins zwei drei vier\nvier vier\n\nsechs sechs\n";
  const ProgramResult result = answer("classify " + path("labels"), input);
  EXPECT_EQ(result.out, "counts\nrepeats\n\nrepeats\n") << result.error;
  const std::vector<std::string> lines =
      lines_of(answer("classify " + path("labels") + " --probabilities", input).out);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_TRUE(lines[0].starts_with("counts\t0.") || lines[0].starts_with("counts\t1.")) << lines[0];
  EXPECT_TRUE(says(lines[0], "\trepeats\t0."));
  const Json json =
      Json::parse(lines_of(answer("classify --json " + path("labels"), input).out)[1]);
  EXPECT_EQ(json["label"], "repeats");
  EXPECT_NEAR(json["probabilities"]["counts"].get<double>() +
                  json["probabilities"]["repeats"].get<double>(),
              1, 1e-6);
}

TEST_F(BertProgram, RefusesModelsWithoutTheAbility) {
  ASSERT_EQ(bert_->code, 0) << bert_->error;
  const ProgramResult classify = answer("classify " + path("bert"), "x\n");
  EXPECT_EQ(classify.code, 1);
  EXPECT_TRUE(says(classify.error, "has no labels yet")) << classify.error;
  const ProgramResult translate = answer("translate " + path("bert"), "x\n");
  EXPECT_EQ(translate.code, 1);
  EXPECT_TRUE(says(translate.error,
                   "bert cannot translate. It can predict masked tokens: see 'nunchi fill"))
      << translate.error;
  const ProgramResult score = run("score " + path("bert") + " " + path("valid.txt"));
  EXPECT_EQ(score.code, 1);
  EXPECT_TRUE(says(score.error, "bert cannot score texts")) << score.error;
  // The message names the ability that the GPT lacks.
  std::filesystem::create_directories(*folder_ / "gpt");
  write_text(*folder_ / "gpt/config.json", R"({"family": "gpt", "vocabulary": 40})");
  for (const auto& [command, what] : {std::pair{"embed ", "embed texts"},
                                      {"classify ", "classify texts"},
                                      {"fill ", "predict masked tokens"}}) {
    const ProgramResult result = answer(command + path("gpt"), "x\n");
    EXPECT_EQ(result.code, 1) << command;
    EXPECT_TRUE(
        says(result.error, "a model of the family gpt cannot " + std::string(what) + ". It"))
        << result.error;
  }
  const ProgramResult pairs = run("score " + path("gpt") + " a b");
  EXPECT_EQ(pairs.code, 2);
  EXPECT_TRUE(says(pairs.error, "scores the lines of one text; leave TGT out")) << pairs.error;
  // config.json alone is enough for this check.
  std::filesystem::create_directories(*folder_ / "alone");
  write_text(*folder_ / "alone/config.json", content(*folder_ / "bert/config.json"));
  for (const char* command : {"translate ", "generate "}) {
    const ProgramResult result = answer(command + path("alone"), "x\n");
    EXPECT_TRUE(says(result.error, "a model of the family bert cannot")) << result.error;
  }
}

TEST_F(BertProgram, RefusesUnsuitableData) {
  const auto train = [&](const std::string& name, const std::string& sets) {
    return run("train " + path(name) + " --set output=" + path("refused") + sets);
  };
  write_text(*folder_ / "other.tsv", "eins\tcounts\nzwei\tsings\n");
  const ProgramResult unknown = train("labels.yaml", " --set 'data.validation={tsv: other.tsv}'");
  EXPECT_EQ(unknown.code, 1);
  EXPECT_TRUE(says(unknown.error, "other.tsv:2: the label 'sings'")) << unknown.error;
  // Masks need a tokenizer with a mask symbol.
  ASSERT_EQ(run("tokenizer train --vocab 40 --no-byte-fallback --output " + path("plain.spm") +
                " --input " + path("train.txt"))
                .code,
            0);
  const ProgramResult maskless = train("bert.yaml", " --set tokenizer.source=" + path("plain.spm"));
  EXPECT_EQ(maskless.code, 1);
  EXPECT_TRUE(says(maskless.error, "no symbol for a masked token")) << maskless.error;
}

// Weights of equal shapes can belong to models that compute different functions.
TEST_F(BertProgram, InitializingNeedsAModelWithTheSameArchitecture) {
  ASSERT_EQ(labels_->code, 0) << labels_->error;
  const auto train = [&](const std::string& sets) {
    return run("train " + path("labels.yaml") +
               " --overwrite --set training.max_steps=1 "
               "--set validation.every=0 --set output=" +
               path("started") + sets);
  };
  for (const auto& [key, value, was] :
       std::vector<std::array<std::string, 3>>{{"layers", "3", "2"},
                                               {"heads", "4", "2"},
                                               {"activation", "relu", "gelu"},
                                               {"norm", "rms", "layer"},
                                               {"norm_placement", "pre", "post"},
                                               {"norm_epsilon", "0.001", "1e-05"},
                                               {"scale_attention", "false", "true"},
                                               {"kv_heads", "1", "2"},
                                               {"max_positions", "40", "32"}}) {
    const ProgramResult result = train(" --set model." + key + "=" + value);
    EXPECT_EQ(result.code, 1);
    EXPECT_TRUE(says(result.error, "bert' cannot be used to start the run: its '" + key + "' is " +
                                       was + ", but the run's is " + value + "."))
        << result.error;
    EXPECT_FALSE(says(result.error, "tokenising")) << result.error;
  }
  const ProgramResult other_position =
      train(" --set model.position=alibi --set model.max_positions=512");
  EXPECT_EQ(other_position.code, 1);
  EXPECT_TRUE(says(other_position.error, "its 'position' is learned, but the run's is alibi."))
      << other_position.error;
  for (const char* same : {" --set model.dropout=0.3", " --set model.head_width=24",
                           " --set model.kv_heads=2", " --set training.label_smoothing=0.1"}) {
    EXPECT_EQ(train(same).code, 0) << same;
  }
  // A classifier with the same labels is kept; otherwise a new one is initialised.
  const std::string from = " --set initialize_from=" + path("labels");
  const ProgramResult again = train(from);
  EXPECT_EQ(again.code, 0) << again.error;
  EXPECT_FALSE(says(again.error, "start with random weights")) << again.error;
  const ProgramResult others = train(from + " --set 'model.labels=[counts, repeats, sings]'");
  EXPECT_EQ(others.code, 0) << others.error;
  EXPECT_TRUE(says(others.error, "has other labels: classifier.dense.weight")) << others.error;
  std::string swapped = content(*folder_ / "train.tsv");
  for (std::size_t i = 0; (i = swapped.find("repeats", i)) != swapped.npos; i += 5) {
    swapped.replace(i, 7, "says");
  }
  write_text(*folder_ / "says.tsv", swapped);
  const ProgramResult renamed =
      train(from + " --set 'data.train={tsv: says.tsv}' --set 'data.validation={tsv: says.tsv}'");
  EXPECT_EQ(renamed.code, 0) << renamed.error;
  EXPECT_TRUE(says(renamed.error, "has other labels")) << renamed.error;
}

// Labels are names and need not occur in the texts.
TEST_F(BertProgram, LearnsItsTokenizerWithoutTheLabels) {
  std::string text = content(*folder_ / "train.tsv"), numbered;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t tab = text.find('\t', begin), end = text.find('\n', begin);
    numbered += text.substr(begin, tab + 1 - begin) + (text[tab + 1] == 'c' ? "0\n" : "1\n");
    begin = end + 1;
  }
  write_text(*folder_ / "numbered.tsv", numbered);
  const ProgramResult result = run(
      "train " + path("labels.yaml") + " --set output=" + path("numbered") +
      " --set 'initialize_from=\"\"' --set tokenizer.kind=characters --set training.max_steps=60 "
      "--set 'data.train={tsv: numbered.tsv}' --set 'data.validation={tsv: numbered.tsv}'");
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_TRUE(says(result.error, "learning a tokenizer of characters from the texts of the"))
      << result.error;
  const std::string tokens = content(*folder_ / "numbered/tokenizer.tok");
  EXPECT_TRUE(says(tokens, "\n0065\n")) << "e\n" << tokens;
  EXPECT_FALSE(says(tokens, "\n0030\n")) << "0\n" << tokens;
  const Json info = Json::parse(run("info --json " + path("numbered")).out);
  EXPECT_EQ(info["config"]["labels"], (Json{"0", "1"}));
}

// Validation may use all labels of the model.
TEST_F(BertProgram, LabelsOfTheConfigNeedNotOccurInTheTrainingData) {
  ASSERT_EQ(labels_->code, 0) << labels_->error;
  write_text(*folder_ / "third.tsv", "eins zwei\tcounts\nzwei\tsings\n");
  const std::string train =
      "train " + path("labels.yaml") +
      " --overwrite --set training.max_steps=1 --set output=" + path("third") +
      " --set 'data.validation={tsv: third.tsv}'";
  const ProgramResult unknown = run(train);
  EXPECT_EQ(unknown.code, 1);
  EXPECT_TRUE(says(unknown.error, "third.tsv:2: the label 'sings'")) << unknown.error;
  const ProgramResult named = run(train + " --set 'model.labels=[counts, repeats, sings]'");
  EXPECT_EQ(named.code, 0) << named.error;
}

TEST_F(BertProgram, AnExistingTokenizerReplacesTokenizerOptions) {
  ASSERT_EQ(bert_->code, 0) << bert_->error;
  const ProgramResult result = run("train " + path("bert.yaml") +
                                   " --set training.max_steps=1 --set output=" + path("read") +
                                   " --set initialize_from=" + path("bert"));
  EXPECT_EQ(result.code, 0) << result.error;
  EXPECT_TRUE(says(result.error, "the config's options for learning one have no effect"))
      << result.error;
}

}  // namespace
}  // namespace nunchi::testing
