// Training steps are deterministic, and a model learns from them.
#include "nunchi/autograd/tape.h"
#include "nunchi/training/optimizer.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

struct Trained {
  std::vector<float> weights;
  double first_loss = 0, last_loss = 0;  // per token
};

Trained train(int threads, int steps, float dropout) {
  CpuContext context({.threads = threads});
  TransformerConfig config = small_config();
  config.dropout = config.attention_dropout = dropout;
  const auto model = make_small<Transformer>(context, config, {.gradients = true});
  AdamOptimizer optimizer(model->parameters(), {.max_norm = 1});
  // Copying a sentence is easy to learn.
  const std::vector<Tokens> sentences = sentences_of({5, 1, 9, 3, 7, 4}, 37, 1);
  const PairBatch batch = pair_batch(context, sentences, sentences, 37);
  const auto tokens = static_cast<double>(batch.target.rows.rows);
  Trained run;
  for (int step = 0; step < steps; ++step) {
    context.set_random_key({.seed = 3, .step = static_cast<std::uint64_t>(step)});
    const ModeScope scope(context, Mode::training);
    Tape tape(context);
    const VocabularyLoss loss = model->loss(batch, {.smoothing = 0.1});
    tape.backward(loss.total);
    run.last_loss = to_host<double>(loss.total.value())[0] / tokens;
    if (step == 0) run.first_loss = run.last_loss;
    optimizer.step({.learning_rate = 3e-3, .tokens = tokens});
  }
  run.weights = to_host<float>(model->parameters().weights());
  return run;
}

TEST(TrainingSteps, AreDeterministic) {
  for (const int threads : {1, 2}) {
    EXPECT_TRUE(same_bits(train(threads, 6, 0.1f).weights, train(threads, 6, 0.1f).weights));
  }
}

TEST(TrainingSteps, NonFiniteGradientsNeverReachTheWeights) {
  CpuContext context({.threads = 2});
  const auto model = make_small<Transformer>(context, small_config(), {.gradients = true});
  AdamOptimizer optimizer(model->parameters(), {.max_norm = 1});
  const std::vector<float> before = to_host<float>(model->parameters().weights());
  for (const double bad : {NAN, INFINITY}) {
    fill(model->parameters().gradients(), bad);
    optimizer.step({.learning_rate = 1e-3, .tokens = 5});
    EXPECT_FALSE(std::isfinite(optimizer.report().gradient_norm));
    EXPECT_TRUE(same_bits(to_host<float>(model->parameters().weights()), before));
    for (const float value : to_host<float>(model->parameters().gradients())) EXPECT_EQ(value, 0);
  }
  EXPECT_NE(error_of([&] { optimizer.step({.learning_rate = 1e-3, .tokens = 0}); }).find("token"),
            std::string::npos);
}

TEST(TrainingSteps, DropoutChangesTheWeights) {
  EXPECT_FALSE(same_bits(train(1, 2, 0.1f).weights, train(1, 2, 0.0f).weights));
}

TEST(TrainingSteps, LearnToCopyASentence) {
  const Trained run = train(2, 150, 0);
  EXPECT_GT(run.first_loss, 3);
  // With a label smoothing of 0.1 over 37 tokens, no loss can be below 0.65.
  EXPECT_LT(run.last_loss, 0.8);
}

}  // namespace
}  // namespace nunchi::testing
