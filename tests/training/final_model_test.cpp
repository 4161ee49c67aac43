// The model of a finished run: the better of the mean of its best checkpoints and the best one.
#include "nunchi/training/final_model.h"

#include <cmath>

#include "nunchi/models/format/folder.h"
#include "tests/training/resumed_run.h"

namespace nunchi::testing {
namespace {

namespace fs = std::filesystem;
using Kind = ModelCandidate::Kind;
using StartMode = RunFolder::StartMode;

std::vector<float> weights_in(const fs::path& folder) {
  CpuContext context({.threads = 1});
  return to_host<float>(load_model(folder, context)->parameters().weights());
}

std::vector<float> mean_of(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> mean(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    mean[i] = static_cast<float>((static_cast<double>(a[i]) + b[i]) / 2);
  }
  return mean;
}

// Validates at steps 2, 4 and 6, and then the mean of the two best.
TrainConfig validating_config(ValidationMetric metric) {
  TrainConfig config = tiny_config();
  config.training.max_steps = 6;
  config.validation = {.every = 2, .metric = metric};
  return config;
}

// Hooks whose validations give these scores, one after another. Each notes the weights that it saw.
struct ScriptedValidation {
  TrainerHooks hooks(TinyRun& run, std::vector<double> scores) {
    TrainerHooks hooks;
    hooks.validate = [this, &run, scores] {
      seen.push_back(run.weights());
      const double score = scores.at(seen.size() - 1);
      return ValidationScores{.loss = score, .bleu = score, .chrf = score};
    };
    return hooks;
  }
  std::vector<std::vector<float>> seen;
};

TEST(FinalModel, TheMeanIsTakenIfItScoresBest) {
  const TemporaryFolder folder;
  TinyRun run(folder.path(), StartMode::fresh, validating_config(ValidationMetric::bleu));
  ScriptedValidation validation;
  EXPECT_EQ(run.train(validation.hooks(run, {10, 30, 20, 30.5})), TrainingEnd::finished);
  const std::vector<float> mean =
      mean_of(weights_in(folder / "checkpoints/step-4"), weights_in(folder / "checkpoints/step-6"));
  ASSERT_EQ(validation.seen.size(), 4u);
  EXPECT_TRUE(same_bits(validation.seen.back(), mean)) << "the mean itself is validated";
  EXPECT_TRUE(same_bits(weights_in(folder.path()), mean));
  EXPECT_TRUE(same_bits(run.weights(), weights_in(folder / "checkpoints/step-6")))
      << "the weights of the last step are restored";
  EXPECT_TRUE(says(run.notes(), "model: the mean of steps 4, 6: BLEU 30.50 (step 4 alone: 30.00)"))
      << run.notes();
  const ModelChoice expected{.chosen = {Kind::mean, {4, 6}, 30.5},
                             .others = {{Kind::step, {4}, 30.0}},
                             .metric = ValidationMetric::bleu};
  EXPECT_EQ(read_model_choice(folder.path()), expected);
}

TEST(FinalModel, TheBestCheckpointIsTakenIfTheMeanIsWorse) {
  for (const auto& [metric, mean_score, text] :
       {std::tuple{ValidationMetric::bleu, 5.2,
                   "model: step 4: BLEU 30.00 (the mean of steps 4, 6: 5.20)"},
        {ValidationMetric::loss, 11.0,
         "model: step 2: loss 10.0000 (the mean of steps 2, 6: 11.0000)"},
        {ValidationMetric::chrf, static_cast<double>(NAN),
         "model: step 4: chrF 30.00 (the mean of steps 4, 6: nan)"}}) {
    const TemporaryFolder folder;
    TinyRun run(folder.path(), StartMode::fresh, validating_config(metric));
    ScriptedValidation validation;
    EXPECT_EQ(run.train(validation.hooks(run, {10, 30, 20, mean_score})), TrainingEnd::finished);
    EXPECT_TRUE(says(run.notes(), text)) << run.notes();
    const std::string best = metric == ValidationMetric::loss ? "step-2" : "step-4";
    EXPECT_TRUE(same_bits(weights_in(folder.path()), weights_in(folder / "checkpoints" / best)));
    ASSERT_TRUE(read_model_choice(folder.path()));
    EXPECT_EQ(read_model_choice(folder.path())->chosen.kind, Kind::step);
  }
}

TEST(FinalModel, WithoutValidationTheMeanIsTakenAndTheRunSaysSo) {
  const TemporaryFolder folder;
  TinyRun run(folder.path(), StartMode::fresh, tiny_config());
  EXPECT_EQ(run.train(), TrainingEnd::finished);
  EXPECT_TRUE(says(run.notes(),
                   "model: the mean of steps 8, 12 (not validated: there is no data.validation)"))
      << run.notes();
  EXPECT_EQ(read_model_choice(folder.path()),
            (ModelChoice{.chosen = {Kind::mean, {8, 12}, {}}, .others = {}, .metric = {}}));
}

TEST(FinalModel, OneCheckpointIsNotValidatedAgain) {
  const TemporaryFolder folder;
  TrainConfig config = validating_config(ValidationMetric::bleu);
  config.checkpoints.average = 1;
  TinyRun run(folder.path(), StartMode::fresh, config);
  ScriptedValidation validation;
  EXPECT_EQ(run.train(validation.hooks(run, {10, 30, 20})), TrainingEnd::finished);
  EXPECT_TRUE(says(run.notes(), "model: step 4: BLEU 30.00\n")) << run.notes();
}

TEST(FinalModel, AnInterruptedChoiceIsFinishedByTheResumedRun) {
  const TemporaryFolder folder;
  const TrainConfig config = validating_config(ValidationMetric::loss);
  std::atomic<bool> stop = false;
  int validations = 0;
  {
    TinyRun run(folder.path(), StartMode::fresh, config);
    TrainerHooks hooks;
    hooks.stop = &stop;
    hooks.validate = [&]() -> std::optional<ValidationScores> {
      if (++validations == 4) {
        stop = true;
        return std::nullopt;
      }
      return ValidationScores{.loss = 10.0 - validations};
    };
    EXPECT_EQ(run.train(hooks), TrainingEnd::interrupted);
    EXPECT_EQ(run.state().step, 6);
    EXPECT_TRUE(same_bits(run.weights(), weights_in(folder / "checkpoints/step-6")));
  }
  EXPECT_FALSE(fs::exists(folder / "model.safetensors"));
  EXPECT_EQ(read_model_choice(folder.path()), std::nullopt);
  TinyRun run(folder.path(), StartMode::resume, config);
  ScriptedValidation validation;
  EXPECT_EQ(run.train(validation.hooks(run, {1})), TrainingEnd::finished);
  EXPECT_TRUE(
      says(run.notes(), "model: the mean of steps 4, 6: loss 1.0000 (step 6 alone: 7.0000)"))
      << run.notes();
  EXPECT_TRUE(fs::exists(folder / "model.safetensors"));
}

// The limit is reached and the request to stop comes while the last step is validated.
TEST(FinalModel, AnInterruptedLastValidationIsRepeatedBeforeTheModelIsChosen) {
  const TemporaryFolder folder;
  TrainConfig config = validating_config(ValidationMetric::loss);
  config.validation.every = 0;
  {
    TinyRun run(folder.path(), StartMode::fresh, config);
    TrainerHooks hooks;
    hooks.validate = []() -> std::optional<ValidationScores> { return std::nullopt; };
    EXPECT_EQ(run.train(hooks), TrainingEnd::interrupted);
    EXPECT_FALSE(fs::exists(folder / "model.safetensors"));
  }
  TinyRun run(folder.path(), StartMode::resume, config);
  ScriptedValidation validation;
  EXPECT_EQ(run.train(validation.hooks(run, {3})), TrainingEnd::finished);
  EXPECT_TRUE(says(run.notes(), "model: step 6: loss 3.0000")) << run.notes();
}

// A run that is resumed keeps the description of the model that is still in its folder.
TEST(FinalModel, AResumedRunKeepsTheChoiceUntilItEnds) {
  const TemporaryFolder folder;
  TrainConfig config = validating_config(ValidationMetric::bleu);
  {
    TinyRun run(folder.path(), StartMode::fresh, config);
    ScriptedValidation validation;
    run.train(validation.hooks(run, {10, 30, 20, 40}));
  }
  const auto before = read_model_choice(folder.path());
  ASSERT_TRUE(before);
  config.training.max_steps = 20;
  std::atomic<bool> stop = false;
  TinyRun run(folder.path(), StartMode::resume, config);
  EXPECT_EQ(run.train(stopping_after(stop, 7)), TrainingEnd::interrupted);
  EXPECT_EQ(read_model_choice(folder.path()), before);
}

TEST(ModelChoice, ADamagedDescriptionIsAnError) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_model_choice(folder.path()), std::nullopt);
  for (const char* text : {R"({"format": 1})", "[1", ""}) {
    write_text(folder / "run.json", text);
    EXPECT_EQ(read_model_choice(folder.path()), std::nullopt) << text;
  }
  for (const char* model :
       {"3", "{}", R"({"kind": "median", "steps": [1]})", R"({"kind": "step", "steps": []})",
        R"({"kind": "step", "steps": ["x"]})", R"({"kind": "step", "steps": [1], "score": "x"})",
        R"({"kind": "step", "steps": [1], "metric": "speed"})",
        R"({"kind": "step", "steps": [1], "others": [3]})"}) {
    write_text(folder / "run.json", R"({"format": 1, "model": )" + std::string(model) + "}");
    const std::string message = error_of([&] { read_model_choice(folder.path()); });
    EXPECT_TRUE(says(message, "run.json: its 'model' does not describe")) << model << message;
  }
}

}  // namespace
}  // namespace nunchi::testing
