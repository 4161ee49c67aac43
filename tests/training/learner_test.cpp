// One step: what micro-batches, keys and objectives have to do with one another.
#include "nunchi/training/learner.h"

#include "nunchi/autograd/tape.h"
#include "tests/training/tiny_run.h"

namespace nunchi::testing {
namespace {

HostBatch batch_of(const std::vector<Tokens>& sentences) {
  HostBatch batch;
  for (const Tokens& sentence : sentences) {
    batch.targets.push_back(sentence);
    batch.sources.push_back(sentence);
    batch.sources.back().push_back(2);
    batch.pairs.push_back(static_cast<std::int64_t>(batch.pairs.size()));
    batch.target_tokens += static_cast<std::int64_t>(sentence.size()) + 1;
  }
  return batch;
}

struct Taught {
  std::vector<float> weights;
  LearnedStep step;
};

Taught teach(const std::vector<HostBatch>& batches, std::uint64_t step) {
  CpuContext context({.threads = 1});
  TransformerConfig config = small_config();
  config.dropout = config.attention_dropout = 0.2f;
  const auto model = make_transformer(context, config, {.gradients = true});
  const TranslationObjective objective(*model, context, 0.1);
  Learner learner(*model, objective, {.epsilon = 1e-3, .max_norm = 1});
  const LearnedStep learned = learner.step(batches, {.seed = 1, .step = step}, 1e-3);
  return {to_host<float>(model->parameters().weights()), learned};
}

// Draws go by a sentence's index in the step, so that where the step is cut changes nothing but the
// order of sums.
TEST(Learner, MicroBatchesAreOneBatch) {
  const std::vector<Tokens> sentences = sentences_of({5, 1, 9, 3, 7, 4}, 37, 1);
  const std::vector<Tokens> front(sentences.begin(), sentences.begin() + 2);
  const std::vector<Tokens> back(sentences.begin() + 2, sentences.end());
  const Taught whole = teach({batch_of(sentences)}, 1);
  const Taught parts = teach({batch_of(front), batch_of(back)}, 1);
  EXPECT_EQ(whole.step.tokens, 35);
  EXPECT_EQ(parts.step.tokens, 35);
  EXPECT_NEAR(whole.step.loss, parts.step.loss, 1e-4);
  EXPECT_NEAR(whole.step.gradient_norm, parts.step.gradient_norm, 1e-6);
  EXPECT_LT(largest_difference(whole.weights, parts.weights), 1e-7);
}

TEST(Learner, DrawsDependOnTheStep) {
  const std::vector<HostBatch> batches = {batch_of(sentences_of({5, 4}, 37, 1))};
  EXPECT_TRUE(same_bits(teach(batches, 1).weights, teach(batches, 1).weights));
  EXPECT_FALSE(same_bits(teach(batches, 1).weights, teach(batches, 2).weights));
}

// Finite losses, infinite gradients.
class Steep final : public Objective {
 public:
  Steep(const Objective& inner, nn::Parameters& parameters)
      : inner_(inner), parameters_(parameters) {}
  Variable loss(const HostBatch& batch, std::int32_t first_sentence) const override {
    const Variable loss = inner_.loss(batch, first_sentence);
    fill(parameters_.gradients(), INFINITY);
    return loss;
  }

 private:
  const Objective& inner_;
  nn::Parameters& parameters_;
};

TEST(Learner, GradientsThatAreNotFiniteTeachNothing) {
  CpuContext context({.threads = 1});
  const auto model = make_transformer(context, small_config(), {.gradients = true});
  const TranslationObjective inner(*model, context, 0.1);
  const Steep steep(inner, model->parameters());
  Learner learner(*model, steep, {});
  const std::vector<float> before = to_host<float>(model->parameters().weights());
  const std::vector<HostBatch> batches = {batch_of(sentences_of({5, 4}, 37, 1))};
  const LearnedStep learned = learner.step(batches, {.seed = 1, .step = 1}, 1e-3);
  EXPECT_TRUE(std::isfinite(learned.loss));
  EXPECT_FALSE(learned.finite);
  EXPECT_EQ(learner.optimizer().steps(), 0);
  EXPECT_TRUE(same_bits(to_host<float>(model->parameters().weights()), before));
  const std::string found = learner.first_not_finite(batches, {.seed = 1, .step = 1});
  EXPECT_NE(found.find("on the way back"), std::string::npos) << found;
  for (const float value : to_host<float>(model->parameters().gradients())) ASSERT_EQ(value, 0);
}

TEST(TranslationObjective, SmoothsLabelsOnlyWhileLearning) {
  CpuContext context({.threads = 1});
  const auto model = make_transformer(context, small_config(), {.gradients = true});
  const TranslationObjective smooth(*model, context, 0.3), plain(*model, context, 0);
  const HostBatch batch = batch_of(sentences_of({5, 4}, 37, 1));
  const auto value = [&](const Objective& objective) {
    return to_host<double>(objective.loss(batch, 0).value())[0];
  };
  EXPECT_EQ(value(smooth), value(plain));
  Tape tape(context);
  EXPECT_NE(value(smooth), value(plain));
}

}  // namespace
}  // namespace nunchi::testing
