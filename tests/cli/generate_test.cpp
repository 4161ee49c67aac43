// `nunchi generate` and other commands with a language model.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "nunchi/text/learn_tokenizer.h"
#include "tests/cli/conversation.h"
#include "tests/cli/program.h"
#include "tests/inference/small_translation.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

class GenerateProgram : public ::testing::Test {
 protected:
  GenerateProgram() {
    CpuContext context({.threads = 1});
    const Tokenizers tokenizers(
        make_tokenizer(learned_bytes({.kind = TokenizerKind::characters}), "characters"));
    save_model(*make_small<Gpt>(context, small_gpt_config(tokenizers.target().vocabulary())),
               model());
    save_tokenizers(tokenizers, model());
  }
  std::filesystem::path model() const { return folder_ / "model"; }
  ProgramResult generate(const std::string& options, const std::string& input = "") const {
    write_text(folder_ / "in", input);
    return run("generate " + model().string() + " " + options, "", (folder_ / "in").string());
  }

  TemporaryFolder folder_;
};

TEST_F(GenerateProgram, ContinuesAPrompt) {
  const ProgramResult result = generate("--prompt 'the dog' --max-tokens 20");
  EXPECT_EQ(result.code, 0) << result.error;
  EXPECT_TRUE(result.out.starts_with("the dog"));
  EXPECT_TRUE(result.out.ends_with("\n"));
  EXPECT_EQ(result.out.size(), std::string("the dog").size() + 20 + 1);
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(generate("--prompt 'the dog' --max-tokens 20").out, result.out);
}

TEST_F(GenerateProgram, APictureDoesNotChangeTheOutput) {
  for (const std::string options : {"--prompt 'the dog' --max-tokens 5", "--max-tokens 5",
                                    "--prompt 'the dog' --max-tokens 5 --json"}) {
    const ProgramResult plain = generate(options, "the dog\n\na fox\n"),
                        drawn = generate(options + " --picture", "the dog\n\na fox\n");
    EXPECT_EQ(drawn.code, 0) << drawn.error;
    EXPECT_EQ(drawn.out, plain.out);
    EXPECT_NE(drawn.error.find("* max"), std::string::npos) << drawn.error;
    EXPECT_NE(drawn.error.find("█"), std::string::npos) << drawn.error;
    EXPECT_EQ(drawn.error.find('\x1b'), std::string::npos);  // no colours in a file
  }
}

TEST_F(GenerateProgram, SamplesDependOnTheSeed) {
  const std::string options = "--prompt a --max-tokens 40 --sample --top-k 20 --temperature 1.2 ";
  const ProgramResult one = generate(options + "--seed 1");
  EXPECT_EQ(one.code, 0) << one.error;
  EXPECT_EQ(generate(options + "--seed 1").out, one.out);
  EXPECT_NE(generate(options + "--seed 2").out, one.out);
  const std::string stop = one.out.substr(10, 2);
  const ProgramResult stopped = generate(options + "--seed 1 --stop '" + stop + "'");
  EXPECT_EQ(stopped.out, one.out.substr(0, one.out.find(stop, 1)) + "\n");
}

TEST_F(GenerateProgram, AcceptsAnEmptyPrompt) {
  const ProgramResult result = generate("--prompt '' --max-tokens 9");
  EXPECT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(result.out.size(), 10u);
}

TEST_F(GenerateProgram, PrintsOneLineForEachPrompt) {
  const ProgramResult result =
      generate("--max-tokens 8 --beam-size 2", "the dog\n\na fox\nbad \xFF byte\n");
  EXPECT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(std::ranges::count(result.out, '\n'), 4);
  EXPECT_TRUE(result.out.starts_with("the dog"));
  EXPECT_TRUE(says(result.out, "\na fox"));
  EXPECT_TRUE(says(result.error, "1 prompt with invalid UTF-8")) << result.error;
  EXPECT_EQ(generate("--max-tokens 8", "").out, "");
}

TEST_F(GenerateProgram, APromptThatIsTooLongIsCounted) {
  const ProgramResult result =
      generate("--max-tokens 2", std::string((1 << 20) + 5, 'a') + "\nthe dog\n");
  EXPECT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(std::ranges::count(result.out, '\n'), 2);
  EXPECT_TRUE(says(result.error, "1 prompt too long: only the beginning of the line was read"))
      << result.error;
}

TEST_F(GenerateProgram, PrintsJson) {
  const ProgramResult result = generate("--prompt 'a fox' --max-tokens 5 --json");
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["prompt"], "a fox");
  EXPECT_EQ(json["tokens"], 5);
  EXPECT_LT(json["log_probability"], 0);
  EXPECT_EQ(generate("--prompt 'a fox' --max-tokens 5").out,
            "a fox" + json["text"].get<std::string>() + "\n");
}

// Each answer is flushed before the program waits for the next prompt.
TEST_F(GenerateProgram, AnswersBeforeTheNextPrompt) {
  Conversation talk({"generate", model().string(), "--max-tokens", "6"});
  for (const char* prompt : {"the dog", "a", "fox"}) {
    ASSERT_TRUE(talk.write(std::string(prompt) + "\n"));
    EXPECT_TRUE(talk.read_line().starts_with(prompt));
  }
  talk.finish_writing();
  EXPECT_EQ(talk.end().code, 0);
}

TEST_F(GenerateProgram, InvalidCommandLinesAreReportedInOneLine) {
  for (const auto& [options, words] : std::vector<std::pair<std::string, std::string>>{
           {"--prompt a --top-k 3", "--top-k has no effect without --sample."},
           {"--prompt a --input x", "--prompt and --input exclude each other"},
           {"--prompt a --max-tokens 0", "--max-tokens"},
           {"--prompt a --sample --temperature 0", "--temperature must be a number above 0"},
           {"--prompt a --sample --beam-size 2", "exclude each other"},
           {"--prompt a --stop ''", "a stop cannot be empty"},
           {"--promt a", "--promt"}}) {
    const ProgramResult result = generate(options);
    EXPECT_EQ(result.code, 2) << options;
    EXPECT_TRUE(says(result.error, words)) << result.error;
    EXPECT_EQ(std::ranges::count(result.error, '\n'), 1) << result.error;
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(GenerateProgram, CommandsRefuseModelsOfAnotherKind) {
  const ProgramResult translate = run("translate " + model().string());
  EXPECT_EQ(translate.code, 1);
  EXPECT_EQ(translate.error,
            "nunchi: a model of the family gpt cannot translate. It can continue a text: see "
            "'nunchi generate --help'.\n");
  const SmallTranslation translation;
  translation.save(folder_ / "translation");
  const ProgramResult generate =
      run("generate " + (folder_ / "translation").string() + " --prompt a");
  EXPECT_EQ(generate.code, 1);
  EXPECT_EQ(generate.error,
            "nunchi: a model of the family transformer cannot continue a text. It can translate: "
            "see 'nunchi translate --help'.\n");
}

TEST_F(GenerateProgram, ScoresLines) {
  write_text(folder_ / "text", "the dog\n\na fox\n");
  const ProgramResult result = run("score " + model().string() + " " + (folder_ / "text").string());
  EXPECT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(std::ranges::count(result.out, '\n'), 3);
  EXPECT_TRUE(says(result.error, "nunchi: 3 lines, 15 target tokens, perplexity ")) << result.error;
  const ProgramResult pairs = run("score " + model().string() + " a b");
  EXPECT_EQ(pairs.code, 2);
  EXPECT_TRUE(says(pairs.error, "scores the lines of one text; leave TGT out")) << pairs.error;
}

TEST_F(GenerateProgram, CharacterTokenizersCanBeTrainedAndUsed) {
  write_text(folder_ / "text", "the dog\na fox\n");
  const std::string file = (folder_ / "c.tok").string();
  const ProgramResult trained = run("tokenizer train --kind characters --input " +
                                    (folder_ / "text").string() + " --output " + file);
  EXPECT_EQ(trained.code, 0) << trained.error;
  EXPECT_TRUE(says(trained.error, "14 tokens")) << trained.error;
  write_text(folder_ / "in", "a dog\n");
  EXPECT_EQ(run("tokenizer encode " + file, "", (folder_ / "in").string()).out, "a ▁ d o g\n");
  write_text(folder_ / "in", "a ▁ d o g\n");
  EXPECT_EQ(run("tokenizer decode " + file, "", (folder_ / "in").string()).out, "a dog\n");
  EXPECT_EQ(run("tokenizer encode " + model().string(), "", "/dev/null").code, 0);
  EXPECT_EQ(run("tokenizer train --kind bpe --input x --output y").code, 2);
}

}  // namespace
}  // namespace nunchi::testing
