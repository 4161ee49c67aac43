// nunchi inspect, as a user calls it.
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/cli/small_run.h"
#include "tests/errors.h"

namespace nunchi::testing {
namespace {

using Json = nlohmann::json;

// The model is trained once for all tests of this file.
class InspectProgram : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = new SmallRun;
    trained_ = new ProgramResult(
        run(data_->arguments("run",
                             "--set checkpoints.keep_last=6 --set training.max_steps=30 "
                             "--set validation.every=10")));
  }
  static void TearDownTestSuite() {
    delete data_;
    delete trained_;
  }
  void SetUp() override { ASSERT_EQ(trained_->code, 0) << trained_->error; }

  static std::string model() { return data_->path("run"); }
  static ProgramResult inspect(const std::string& arguments,
                               const std::string& input = "/dev/null") {
    return run("inspect " + model() + " " + arguments, "", input);
  }

  static SmallRun* data_;
  static ProgramResult* trained_;
};
SmallRun* InspectProgram::data_ = nullptr;
ProgramResult* InspectProgram::trained_ = nullptr;

TEST_F(InspectProgram, PrintsTheWalkByDefault) {
  const ProgramResult result = inspect("'eins zwei drei'");
  EXPECT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(result.error, "");
  std::size_t at = 0;
  for (const char* title :
       {"[Text]", "[Tokenizer: token → id]", "[Embedding: id → vector]", "[Position: sinusoidal]",
        "[Query/Key/Value]", "[Query · Key]", "[÷ √24]", "[Softmax]", "[Weighted sum]",
        "[Concat: heads side by side]", "[Linear]", "[Add & Norm]", "Feed Forward]", "[Mask]",
        "logits → Softmax]", "[Detokenizer]"}) {
    const std::size_t found = result.out.find(title, at);
    EXPECT_NE(found, std::string::npos) << title;
    if (found != std::string::npos) at = found;
  }
}

TEST_F(InspectProgram, JsonSaysWhatTranslateSays) {
  const ProgramResult translated = run("translate " + model(), "", [] {
    write_text(data_->folder() / "line.txt", "eins zwei drei\n");
    return data_->path("line.txt");
  }());
  const ProgramResult result = inspect("'eins zwei drei' --format json");
  ASSERT_EQ(result.code, 0) << result.error;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["text"]["target"].get<std::string>() + "\n", translated.out);
  EXPECT_EQ(json["model"]["name"], "run");
  for (std::size_t i = 0; i < json["steps"].size(); ++i) {
    EXPECT_EQ(json["steps"][i]["piece"], json["target"][i]);
  }
}

TEST_F(InspectProgram, TheTextMayComeFromStandardInput) {
  write_text(data_->folder() / "text.txt", "eins zwei\n");
  const ProgramResult piped = inspect("--format json", data_->path("text.txt"));
  EXPECT_EQ(piped.out, inspect("'eins zwei' --format json").out);
}

TEST_F(InspectProgram, EveryViewAndFormatWorks) {
  for (const char* view :
       {"walk", "attention", "arithmetic", "words", "positions", "norms", "beam"}) {
    for (const char* format : {"text", "json", "npz", "svg", "html"}) {
      const ProgramResult result =
          inspect(std::string("'eins zwei' --beam-size 2 --view ") + view + " --format " + format +
                  " --output " + data_->path("out"));
      EXPECT_EQ(result.code, 0) << view << " " << format << ": " << result.error;
      EXPECT_FALSE(content(data_->path("out")).empty());
    }
  }
}

TEST_F(InspectProgram, CheckpointsBecomeOnePage) {
  const ProgramResult result = inspect("'eins zwei' --checkpoints --format json");
  ASSERT_EQ(result.code, 0) << result.error;
  const Json json = Json::parse(result.out);
  ASSERT_GE(json["checkpoints"].size(), 6u);
  EXPECT_EQ(json["inspections"].size(), json["checkpoints"].size());
  EXPECT_EQ(json["checkpoints"].back()["step"], 30);
  EXPECT_EQ(json["checkpoints"].back()["metric"]["name"], "bleu");
  // The log begins with step 10.
  EXPECT_FALSE(json["checkpoints"][0].contains("loss"));
  EXPECT_LT(json["checkpoints"].back()["loss"], json["checkpoints"][1]["loss"]);
}

TEST_F(InspectProgram, WrongCallsAreOneSentence) {
  struct Case {
    const char *arguments, *message;
  };
  for (const Case& each : {Case{"''", "the text has no words"},
                           {"'eins' --layer 9", "layers 1 to 1"},
                           {"'eins' --query 40", "queries are 1 to"},
                           {"'eins' --query neun", "no query is 'neun'"},
                           {"'eins' --target 'zwei' --view beam", "no search to show"},
                           {"'eins' --checkpoints", "--checkpoints needs"}}) {
    const ProgramResult result = inspect(each.arguments);
    EXPECT_EQ(result.code, 2) << each.arguments;
    EXPECT_NE(result.error.find(each.message), std::string::npos) << result.error;
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(InspectProgram, ALongTextIsCutWithOneSentence) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "eins ";
  write_text(data_->folder() / "long.txt", text);
  const ProgramResult result = inspect("--format json --max-length 16", data_->path("long.txt"));
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_NE(result.error.find("only its first 16 tokens were used"), std::string::npos)
      << result.error;
  EXPECT_EQ(Json::parse(result.out)["source"].size(), 16u);
}

}  // namespace
}  // namespace nunchi::testing
