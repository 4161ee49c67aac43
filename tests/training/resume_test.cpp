// A run that was stopped and resumed gives the same bits as an uninterrupted run, for every model
// and every objective.
#include "tests/models/every_model.h"
#include "tests/training/resumed_run.h"

namespace nunchi::testing {
namespace {

// The stops are between lines of the log, between checkpoints and within epochs.
TEST(Resume, ARunOfTwoEpochsContinuesBitForBit) {
  for (const int threads : {1, 2}) {
    expect_same_when_resumed(tiny_config(), {.threads = threads}, {2, 5, 11, 12});
  }
}

constexpr ModelSize kSmallest = {.vocabulary = kTinyVocabulary,
                                 .width = 16,
                                 .head_width = 6,
                                 .feed_forward = 20,
                                 .dropout = 0.1f};

// A few steps with the model's default objective.
TrainConfig short_run(const ModelConfig& model) {
  TrainConfig config = tiny_config();
  config.model = model;
  config.training.objective = model->objective();
  config.training.max_steps = 4;
  config.training.log_every = 2;
  config.checkpoints = {.every = 100, .keep_last = 1, .keep_best = 0, .average = 1};
  return config;
}

class ResumeOf : public EveryModel {};

TEST_P(ResumeOf, EveryModelContinuesBitForBit) {
  for (const NamedModel& named : models_of(GetParam(), kSmallest)) {
    SCOPED_TRACE(named.name);
    expect_same_when_resumed(short_run(named.config), {.threads = 1}, {1, 4});
  }
}

FOR_EVERY_FAMILY(ResumeOf);

TEST(Resume, SpanCorruptionContinuesBitForBit) {
  TrainConfig config = short_run(models_of("t5", kSmallest).front().config);
  config.training.objective = ObjectiveKind::span_corruption;
  expect_same_when_resumed(config, {.threads = 1}, {1, 4});
}

TEST(Resume, ClassificationContinuesBitForBit) {
  BertConfig model = models_of("bert", kSmallest).front().config.as<BertConfig>();
  model.labels = {"even", "odd"};
  TrainConfig config = short_run(model);
  config.training.objective = ObjectiveKind::classification;
  expect_same_when_resumed(config, {.threads = 1}, {1, 4});
}

TEST(Resume, AFreeRunningDecoderContinuesBitForBit) {
  RnnConfig model = models_of("rnn", kSmallest).front().config.as<RnnConfig>();
  model.free_running = 0.3f;
  expect_same_when_resumed(short_run(model), {.threads = 1}, {1, 4});
}

}  // namespace
}  // namespace nunchi::testing
