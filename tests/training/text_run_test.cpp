// Trains a language model, from a text to a model folder.
#include "nunchi/models/families/gpt_config.h"
#include "nunchi/models/format/folder.h"
#include "nunchi/training/training_run.h"
#include "tests/files.h"
#include "tests/support.h"

namespace nunchi::testing {
namespace {

// Repeated lines, which are easy to learn.
std::string some_text(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) {
    text += i % 3 == 0 ? "the quick brown fox\n" : i % 3 == 1 ? "\n" : "jumps over 눈치\n";
  }
  return text;
}

class TextRun : public ::testing::Test {
 protected:
  TextRun() {
    write_text(folder_ / "a.txt", some_text(120));
    write_text(folder_ / "b.txt", some_text(10));
    GptConfig model;
    model.layers = 2;
    model.width = 32;
    model.heads = 2;
    model.feed_forward = 64;
    model.max_positions = 24;
    model.dropout = 0.1f;
    config_.model = model;
    config_.seed = 7;
    config_.tokenizer.options.kind = TokenizerKind::characters;
    config_.data.train = {{.text = folder_ / "a.txt"}};
    config_.data.validation = CorpusPart{.text = folder_ / "b.txt"};
    config_.data.cut = TextCut::windows;
    config_.data.window = 24;
    config_.training.objective = ObjectiveKind::causal;
    config_.training.batch_tokens = 150;
    config_.training.label_smoothing = 0;
    config_.training.schedule.peak = 1e-2;
    config_.training.schedule.warmup = 5;
    config_.training.max_steps = 30;
    config_.checkpoints = {.every = 10, .keep_last = 2, .keep_best = 2, .average = 1};
    config_.validation = {.every = 10, .metric = ValidationMetric::loss};
  }

  // Stops the run after step `stop_after`; 0: never.
  TrainingEnd train(const std::string& output, RunFolder::StartMode mode, std::int64_t stop_after) {
    CpuContext context({.threads = 2});
    RunFolder run_folder(folder_ / output, mode);
    TrainingRun run(context, config_,
                    {.cache = folder_ / "cache", .checkpoint = run_folder.last_checkpoint()});
    std::atomic<bool> stop = false;
    TrainerHooks hooks;
    hooks.stop = &stop;
    hooks.note = [&](const std::string& note) { notes_ += note + "\n"; };
    hooks.progress = [&](const TrainingProgress& progress) { stop = progress.step == stop_after; };
    return run.train(&run_folder, hooks);
  }

  TemporaryFolder folder_;
  TrainConfig config_;
  std::string notes_;
};

TEST_F(TextRun, LearnsAndLeavesAModelFolder) {
  config_.training.max_steps = 200;
  config_.validation.every = 100;
  EXPECT_EQ(train("run", RunFolder::StartMode::fresh, 0), TrainingEnd::finished);
  EXPECT_NE(notes_.find("validation loss"), std::string::npos);
  EXPECT_EQ(notes_.find("BLEU"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/tokenizer.tok"));
  CpuContext context({.threads = 1});
  const auto model = load_model(folder_ / "run", context);
  const Tokenizers tokenizers = load_tokenizers(folder_ / "run");
  const LanguageModel& text_model = as_language_model(*model);
  tokenizers.check_fit(*model, "here");
  const TextBatch batch = make_text_batch(
      context, std::vector<Tokens>{tokenizers.target().encode("the quick brown fox")},
      text_model.target_vocabulary());
  // The model has memorised the sentence, except for the first letters.
  EXPECT_LT(to_host<double>(text_model.loss(batch, {}).total.value())[0], 8);
}

TEST_F(TextRun, AResumedRunGivesTheBitsOfAnUninterruptedRun) {
  EXPECT_EQ(train("whole", RunFolder::StartMode::fresh, 0), TrainingEnd::finished);
  for (const std::int64_t steps : {3, 17, 29}) {
    EXPECT_EQ(train("parts",
                    steps == 3 ? RunFolder::StartMode::fresh : RunFolder::StartMode::resume, steps),
              TrainingEnd::interrupted);
  }
  EXPECT_EQ(train("parts", RunFolder::StartMode::resume, 0), TrainingEnd::finished);
  for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
    const std::string path = std::string("checkpoints/step-30/") + name;
    EXPECT_EQ(content(folder_ / "whole" / path), content(folder_ / "parts" / path)) << name;
  }
}

TEST_F(TextRun, AnEmptyTextIsRejected) {
  write_text(folder_ / "a.txt", "\n");
  config_.tokenizer.options.kind = TokenizerKind::bytes;
  EXPECT_NE(error_of([&] {
              train("run", RunFolder::StartMode::fresh, 0);
            }).find("there is nothing to learn from (1 line: 1 line kept)"),
            std::string::npos);
}

TEST_F(TextRun, AnUnsupportedObjectiveIsRejected) {
  config_.training.objective = ObjectiveKind::translation;
  config_.data.cut = TextCut::lines;
  EXPECT_NE(error_of([&] {
              train("run", RunFolder::StartMode::fresh, 0);
            }).find("a model of the family gpt cannot translate."),
            std::string::npos);
}

}  // namespace
}  // namespace nunchi::testing
