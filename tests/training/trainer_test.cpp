#include "nunchi/training/trainer.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "nunchi/base/error.h"
#include "nunchi/models/format/folder.h"
#include "nunchi/models/format/safetensors.h"
#include "tests/training/resumed_run.h"

namespace nunchi::testing {
namespace {

namespace fs = std::filesystem;
using StartMode = RunFolder::StartMode;
using Json = nlohmann::json;

TEST(Trainer, AFinishedRunsFolderIsAModelFolder) {
  const TemporaryFolder folder;
  TinyRun run(folder.path(), StartMode::fresh, tiny_config());
  EXPECT_EQ(run.train(), TrainingEnd::finished);
  EXPECT_EQ(checkpoint_steps(folder / "checkpoints"), (std::vector<std::int64_t>{8, 12}));
  CpuContext context;
  const auto mean = to_host<float>(load_model(folder.path(), context)->parameters().weights());
  const auto weights_of = [&](const char* name) {
    return to_host<float>(load_model(folder / name, context)->parameters().weights());
  };
  const std::vector<float> a = weights_of("checkpoints/step-8"),
                           b = weights_of("checkpoints/step-12");
  for (std::size_t i = 0; i < mean.size(); ++i) {
    ASSERT_EQ(mean[i], static_cast<float>((static_cast<double>(a[i]) + b[i]) / 2));
  }
}

TEST(Trainer, LearnsAndReportsProgress) {
  const TemporaryFolder folder;
  TrainConfig config = tiny_config();
  config.training.max_steps = 80;
  config.training.log_every = 10;
  TinyRun run(folder.path(), StartMode::fresh, config);
  std::vector<TrainingProgress> reports;
  TrainerHooks hooks;
  hooks.progress = [&](const TrainingProgress& progress) { reports.push_back(progress); };
  run.train(hooks);
  ASSERT_EQ(reports.size(), 80u);
  EXPECT_LT(reports.back().loss, 0.9 * reports.front().loss);
  EXPECT_EQ(reports.back().seconds_left, 0);
  EXPECT_GT(reports[10].seconds_left, 0);
  EXPECT_GT(reports[10].target_tokens_per_second, 0);
  EXPECT_EQ(reports[3].learning_rate, 3e-3);
  EXPECT_EQ(reports[10].total_steps, 80);
  EXPECT_EQ(timeless_log(folder.path()).size(), 8u);
}

TEST(Trainer, MaxEpochsEndsARun) {
  const TemporaryFolder folder;
  TrainConfig config = tiny_config();
  config.training.max_steps = 0;
  config.training.max_epochs = 2;
  config.training.accumulate = 1;
  TinyRun run(folder.path(), StartMode::fresh, config);
  run.train();
  EXPECT_EQ(run.state().epoch, 2);
  EXPECT_EQ(run.state().batch, 0);
  EXPECT_EQ(run.state().step, run.order().epoch(0).size() + run.order().epoch(1).size());
}

TEST(Trainer, KeepsTheBestCheckpointsAndStopsEarly) {
  const TemporaryFolder folder;
  TrainConfig config = tiny_config();
  config.training.max_steps = 100;
  config.checkpoints = {.every = 100, .keep_last = 1, .keep_best = 2, .average = 2};
  config.validation = {.every = 2, .metric = ValidationMetric::bleu, .patience = 3};
  TinyRun run(folder.path(), StartMode::fresh, config);
  std::vector<double> scores = {10, 30, 20, 30, 5, 1, 1, 1};
  std::size_t next = 0;
  TrainerHooks hooks;
  hooks.validate = [&] {
    return ValidationScores{.loss = 2, .bleu = scores.at(next++), .chrf = 1};
  };
  EXPECT_EQ(run.train(hooks), TrainingEnd::stopped_early);
  EXPECT_EQ(run.state().step,
            10);  // the best at step 4, then three validations without improvement
  EXPECT_EQ(run.state().best, (std::vector<StepScore>{{4, 30}, {8, 30}}));
  EXPECT_EQ(checkpoint_steps(folder / "checkpoints"), (std::vector<std::int64_t>{4, 8, 10}));
  EXPECT_TRUE(fs::exists(folder / "model.safetensors"));
}

TEST(Trainer, ALowerLossIsBetter) {
  const TemporaryFolder folder;
  TrainConfig config = tiny_config();
  config.training.max_steps = 6;
  config.validation = {.every = 2, .metric = ValidationMetric::loss};
  TinyRun run(folder.path(), StartMode::fresh, config);
  std::vector<double> losses = {3, NAN, 2, 4};  // the last is of the mean
  std::size_t next = 0;
  TrainerHooks hooks;
  hooks.validate = [&] { return ValidationScores{.loss = losses.at(next++)}; };
  EXPECT_EQ(run.train(hooks), TrainingEnd::finished);
  EXPECT_EQ(run.state().best, (std::vector<StepScore>{{6, 2}, {2, 3}}));
}

TEST(Trainer, AnInterruptedValidationIsRepeatedOnResume) {
  const TemporaryFolder folder;
  TrainConfig config = tiny_config();
  config.training.max_steps = 6;
  config.validation = {.every = 2, .metric = ValidationMetric::loss};
  std::atomic<bool> stop = false;
  TrainerHooks hooks;
  hooks.stop = &stop;
  hooks.validate = [&]() -> std::optional<ValidationScores> {
    stop = true;
    return std::nullopt;
  };
  {
    TinyRun run(folder.path(), StartMode::fresh, config);
    EXPECT_EQ(run.train(hooks), TrainingEnd::interrupted);
    EXPECT_EQ(run.state().step, 2);
  }
  stop = false;
  int validations = 0;
  hooks.validate = [&] { return ValidationScores{.loss = 10.0 - ++validations}; };
  TinyRun run(folder.path(), StartMode::resume, config);
  EXPECT_EQ(run.train(hooks), TrainingEnd::finished);
  EXPECT_EQ(validations, 4);  // three steps and the mean
  EXPECT_EQ(run.state().best.front().step, 6);
}

// Hooks that put a NaN into a parameter for the steps from `first` to `last`.
TrainerHooks poisoning(TinyRun& run, std::int64_t first, std::int64_t last) {
  TrainerHooks hooks;
  hooks.before_step = [&run, first, last,
                       before = std::vector<float>()](std::int64_t step) mutable {
    const Tensor& bias =
        run.model().parameters().find("encoder.layers.1.feed_forward.down.bias")->variable.value();
    if (step == first) {
      before = to_host<float>(bias);
      std::vector<float> poisoned = before;
      poisoned[3] = NAN;
      copy_from_host<float>(poisoned, bias);
    }
    if (step == last + 1) copy_from_host<float>(before, bias);
    run.model().parameters().changed();
  };
  return hooks;
}

TEST(Trainer, ANonFiniteStepIsSkippedAndItsBatchesSaved) {
  const TemporaryFolder folder;
  TinyRun run(folder.path(), StartMode::fresh, tiny_config());
  EXPECT_EQ(run.train(poisoning(run, 3, 4)), TrainingEnd::finished);
  EXPECT_EQ(run.state().step, 12);
  EXPECT_EQ(run.state().skipped_steps, 2);
  for (const float weight : run.weights()) ASSERT_TRUE(std::isfinite(weight));
  EXPECT_TRUE(says(run.notes(), "step 3: the loss is not finite: feed_forward (operation"))
      << run.notes();
  const Json saved = Json::parse(content(folder / "failed/step-3.json"));
  EXPECT_EQ(saved["step"], 3);
  EXPECT_TRUE(saved["loss"].is_null());
  EXPECT_TRUE(says(saved["operation"].get<std::string>(), "feed_forward"));
  ASSERT_EQ(saved["batches"].size(), 2u);
  const Json& batch = saved["batches"][0];
  const std::int64_t pair = batch["pairs"][0];
  Tokens buffer;
  const auto [source, target] = run.order().read(pair, buffer);
  EXPECT_EQ(batch["sources"][0].get<Tokens>(), Tokens(source.begin(), source.end()));
  EXPECT_EQ(batch["targets"][0].get<Tokens>(), Tokens(target.begin(), target.end()));
  EXPECT_FALSE(fs::exists(folder / "failed/step-5.json"));
}

TEST(Trainer, ThreeNonFiniteStepsInARowEndTheRun) {
  const TemporaryFolder folder;
  TinyRun run(folder.path(), StartMode::fresh, tiny_config());
  const std::string message = error_of([&] { run.train(poisoning(run, 6, 100)); });
  EXPECT_TRUE(says(message, "step 8: the loss is not finite")) << message;
  EXPECT_TRUE(says(message, "3 steps in a row") && says(message, "from step 4")) << message;
  EXPECT_EQ(checkpoint_steps(folder / "checkpoints"), (std::vector<std::int64_t>{4}));
}

TEST(Trainer, ACheckpointThatDoesNotFitIsRejected) {
  const TemporaryFolder folder;
  {
    TinyRun run(folder.path(), StartMode::fresh, tiny_config());
    run.train();
  }
  TrainConfig wider = tiny_config();
  TransformerConfig model = wider.model.as<TransformerConfig>();
  model.feed_forward = 80;
  wider.model = model;
  TinyRun run(folder.path(), StartMode::resume, wider);
  EXPECT_TRUE(says(error_of([&] { run.train(); }), "does not fit the model"));
}

TEST(Trainer, ReportsChangesOfTheConfigAndTheData) {
  const TemporaryFolder folder;
  std::atomic<bool> stop = false;
  {
    TinyRun run(folder.path(), StartMode::fresh, tiny_config());
    run.train(stopping_after(stop, 5));
  }
  TrainConfig other = tiny_config();
  other.seed = 6;  // changes the order of the data as well
  TinyRun run(folder.path(), StartMode::resume, other);
  run.train();
  EXPECT_TRUE(says(run.notes(), "resuming at step 5")) << run.notes();
  EXPECT_TRUE(says(run.notes(), "the config differs from")) << run.notes();
  EXPECT_TRUE(says(run.notes(), "starts again")) << run.notes();
  EXPECT_EQ(run.state().step, 12);
}

}  // namespace
}  // namespace nunchi::testing
