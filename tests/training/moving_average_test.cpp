#include "nunchi/training/moving_average.h"

#include "nunchi/models/format/folder.h"
#include "nunchi/models/format/safetensors.h"
#include "nunchi/training/run/average.h"
#include "nunchi/training/run/model_choice.h"
#include "tests/training/resumed_run.h"

namespace nunchi::testing {
namespace {

namespace fs = std::filesystem;
using Kind = ModelCandidate::Kind;
using StartMode = RunFolder::StartMode;

// More weights than a chunk of the average, and a size that is no multiple of a chunk's row.
struct ManyWeights {
  explicit ManyWeights(int threads) : context({.threads = threads}) {
    parameters.add("a", {1'053'009}, nn::Init::normal(1));
    parameters.allocate(context, {.gradients = true});
    parameters.initialize(3);
  }
  void set(std::uint64_t seed) {
    copy_from_host<float>(random_values<float>(1'053'009, seed),
                          parameters.weight(*parameters.find("a")));
    parameters.changed();
  }
  CpuContext context;
  nn::Parameters parameters;
};

TEST(MovingAverage, IsTheSumOfTheFormula) {
  ManyWeights many(2);
  MovingAverage average(many.parameters, 0.5);
  std::vector<float> weights = to_host<float>(many.parameters.weights());
  std::vector<double> expected(weights.begin(), weights.end());
  EXPECT_TRUE(same_bits(to_host<float>(average.weights()), weights));
  for (int update = 1; update <= 12; ++update) {
    many.set(100 + static_cast<std::uint64_t>(update));
    average.update(update);
    weights = to_host<float>(many.parameters.weights());
    const double decay = std::min(0.5, (1.0 + update) / (10.0 + update));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] = decay * expected[i] + (1 - decay) * weights[i];
    }
  }
  const std::vector<float> found = to_host<float>(average.weights());
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-6) << i;
}

TEST(MovingAverage, TheNumberOfThreadsChangesNoBit) {
  const auto result = [](int threads) {
    ManyWeights many(threads);
    MovingAverage average(many.parameters, 0.9);
    for (int update = 1; update <= 3; ++update) {
      many.set(static_cast<std::uint64_t>(update));
      average.update(update);
    }
    return to_host<float>(average.weights());
  };
  EXPECT_TRUE(same_bits(result(1), result(2)));
}

TrainConfig averaging_config() {
  TrainConfig config = tiny_config();
  config.training.ema = 0.9;
  return config;
}

TEST(MovingAverage, AResumedRunContinuesItBitForBit) {
  expect_same_when_resumed(averaging_config(), {.threads = 1}, {2, 5, 11, 12});
}

TEST(MovingAverage, DoesNotChangeTheTrainedWeights) {
  const TemporaryFolder folder;
  TinyRun plain(folder / "plain", StartMode::fresh, tiny_config());
  TinyRun averaging(folder / "averaging", StartMode::fresh, averaging_config());
  TrainerHooks hooks;
  hooks.validate = [] { return ValidationScores{.loss = 3, .bleu = 1, .chrf = 1}; };
  plain.train(hooks);
  averaging.train(hooks);
  EXPECT_TRUE(same_bits(plain.weights(), averaging.weights()));
  EXPECT_FALSE(fs::exists(folder / "plain/checkpoints/step-12" / kAverageFile));
}

// The weights at each validation; the last two are those of the final comparison.
struct Validated {
  std::vector<std::vector<float>> weights;
  std::string notes;
};

Validated run_and_validate(const fs::path& folder, const std::vector<double>& losses,
                           const std::function<void(TinyRun&, TrainerHooks&)>& change = {}) {
  TrainConfig config = averaging_config();
  config.training.max_steps = 6;
  config.validation = {.every = 2, .metric = ValidationMetric::loss};
  TinyRun run(folder, StartMode::fresh, config);
  Validated result;
  TrainerHooks hooks;
  hooks.validate = [&] {
    result.weights.push_back(run.weights());
    return ValidationScores{.loss = losses.at(result.weights.size() - 1)};
  };
  if (change) change(run, hooks);
  EXPECT_EQ(run.train(hooks), TrainingEnd::finished);
  result.notes = run.notes();
  return result;
}

std::vector<float> average_in(const fs::path& checkpoint) {
  const TemporaryFolder folder;
  ModelMean({checkpoint}, kAverageFile).save(folder / "average");
  CpuContext context({.threads = 1});
  return to_host<float>(load_model(folder / "average", context)->parameters().weights());
}

std::vector<float> model_in(const fs::path& folder) {
  CpuContext context({.threads = 1});
  return to_host<float>(load_model(folder, context)->parameters().weights());
}

TEST(MovingAverage, IsWhatIsValidatedAndWhatBecomesTheModelIfItIsBest) {
  const TemporaryFolder folder;
  const Validated found = run_and_validate(folder.path(), {9, 8, 2, 3, 4});
  const fs::path last = folder / "checkpoints/step-6";
  ASSERT_EQ(found.weights.size(), 5u);
  EXPECT_TRUE(same_bits(found.weights[2], average_in(last)));
  EXPECT_FALSE(same_bits(found.weights[2], model_in(last)));
  EXPECT_TRUE(same_bits(found.weights[4], model_in(last)));
  EXPECT_TRUE(same_bits(model_in(folder.path()), average_in(last)));
  EXPECT_TRUE(says(found.notes,
                   "model: the moving average at step 6: loss 2.0000 (the mean of steps 4, 6: "
                   "3.0000; step 6 alone: 4.0000)"))
      << found.notes;
  EXPECT_EQ(read_model_choice(folder.path())->chosen.kind, Kind::ema);
}

TEST(MovingAverage, OtherWeightsBecomeTheModelIfTheyAreBetter) {
  const TemporaryFolder folder;
  const Validated mean = run_and_validate(folder / "mean", {9, 8, 5, 3, 4});
  EXPECT_TRUE(says(mean.notes, "model: the mean of steps 4, 6: loss 3.0000")) << mean.notes;
  EXPECT_TRUE(same_bits(model_in(folder / "mean"), mean.weights[3]));
  const Validated step = run_and_validate(folder / "step", {9, 8, 5, 3, 1});
  EXPECT_TRUE(says(step.notes, "model: step 6: loss 1.0000 (the moving average at step 6: 5.0000"))
      << step.notes;
  EXPECT_TRUE(same_bits(model_in(folder / "step"), model_in(folder / "step/checkpoints/step-6")));
}

TEST(MovingAverage, ASkippedStepDoesNotCount) {
  const TemporaryFolder folder;
  // A NaN is in the weights during steps 3 and 4.
  const Validated found =
      run_and_validate(folder.path(), {9, 8, 2, 3, 4}, [](TinyRun& run, TrainerHooks& hooks) {
        hooks.before_step = [&run, before = std::vector<float>()](std::int64_t step) mutable {
          nn::Parameters& parameters = run.model().parameters();
          if (step == 3) {
            before = run.weights();
            fill(parameters.weight(*parameters.find("encoder.layers.1.feed_forward.down.bias")),
                 NAN);
            parameters.changed();
          }
          if (step == 5) {
            copy_from_host<float>(before, parameters.weights());
            parameters.changed();
          }
        };
      });
  EXPECT_TRUE(same_bits(found.weights[0], found.weights[1]));
  EXPECT_FALSE(same_bits(found.weights[1], found.weights[2]));
}

TEST(MovingAverage, StartsWithTheWeightsOfACheckpointThatHasNone) {
  const TemporaryFolder folder;
  std::atomic<bool> stop = false;
  {
    TinyRun run(folder.path(), StartMode::fresh, tiny_config());
    run.train(stopping_after(stop, 5));
  }
  stop = false;
  TinyRun run(folder.path(), StartMode::resume, averaging_config());
  run.train(stopping_after(stop, 6));
  const std::vector<float> old_weights = model_in(folder / "checkpoints/step-5"),
                           new_weights = model_in(folder / "checkpoints/step-6"),
                           average = average_in(folder / "checkpoints/step-6");
  constexpr double kDecay = 7.0 / 16;  // after six updates
  for (std::size_t i = 0; i < average.size(); ++i) {
    ASSERT_NEAR(average[i], kDecay * old_weights[i] + (1 - kDecay) * new_weights[i], 1e-6);
  }
}

TEST(MovingAverage, ADamagedFileIsAnError) {
  const TemporaryFolder folder;
  std::atomic<bool> stop = false;
  {
    TinyRun run(folder.path(), StartMode::fresh, averaging_config());
    run.train(stopping_after(stop, 5));
  }
  const fs::path file = folder / "checkpoints/step-5" / kAverageFile;
  const std::vector<float> one = {1};
  const std::vector<SafetensorsEntry> other = {
      {"x", DType::f32, {1}, std::as_bytes(std::span(one))}};
  write_safetensors(file, other, {});
  TinyRun run(folder.path(), StartMode::resume, averaging_config());
  const std::string message = error_of([&] { run.train(); });
  EXPECT_TRUE(says(message, "step-5' does not fit the model: it has no tensor")) << message;
}

}  // namespace
}  // namespace nunchi::testing
