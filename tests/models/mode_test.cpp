// Dropout depends on the context's mode, not on whether a tape records.
#include "nunchi/device/mode.h"

#include "nunchi/autograd/tape.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

class ModelMode : public ::testing::Test {
 protected:
  ModelMode() { context_.set_random_key({.seed = 3, .step = 1}); }

  // Every call gives the same weights.
  std::unique_ptr<Transformer> model(float dropout) {
    TransformerConfig config = small_config();
    config.dropout = config.attention_dropout = config.activation_dropout = dropout;
    return make_small<Transformer>(context_, config, {.gradients = true});
  }
  VocabularyLoss loss_of(const Transformer& model) const { return model.loss(batch_, {}); }
  double value_of(const Transformer& model) const {
    return to_host<double>(loss_of(model).total.value())[0];
  }
  std::vector<float> gradients_of(const Transformer& model) {
    fill(model.parameters().gradients(), 0);
    Tape tape(context_);
    tape.backward(loss_of(model).total);
    return to_host<float>(model.parameters().gradients());
  }

  CpuContext context_{CpuOptions{.threads = 1}};
  PairBatch batch_ =
      pair_batch(context_, sentences_of({5, 9, 3}, 37, 1), sentences_of({4, 8, 6}, 37, 2), 37);
};

TEST_F(ModelMode, ATapeInEvaluatingModeGivesGradientsWithoutDropout) {
  const auto dropping = model(0.3f), plain = model(0);
  EXPECT_TRUE(same_bits(gradients_of(*dropping), gradients_of(*plain)));
  const ModeScope scope(context_, Mode::training);
  EXPECT_FALSE(same_bits(gradients_of(*dropping), gradients_of(*plain)));
}

TEST_F(ModelMode, DropoutActsOnlyInTrainingModeWithOrWithoutATape) {
  const auto dropping = model(0.3f), plain = model(0);
  EXPECT_EQ(value_of(*dropping), value_of(*plain));
  const ModeScope scope(context_, Mode::training);
  const double without_tape = value_of(*dropping);
  EXPECT_NE(without_tape, value_of(*plain));
  const Tape tape(context_);
  EXPECT_EQ(value_of(*dropping), without_tape);
}

TEST_F(ModelMode, AModelGeneratesOnlyInEvaluatingModeWithoutATape) {
  const auto generator = model(0);
  const nn::CacheLimits limits{.positions = 8, .memory_rows = 64, .source_length = 16};
  generator->make_state(context_, limits);
  {
    const ModeScope scope(context_, Mode::training);
    EXPECT_NE(error_of([&] { generator->make_state(context_, limits); }).find("evaluating mode"),
              std::string::npos);
  }
  const Tape tape(context_);
  EXPECT_NE(error_of([&] { generator->make_state(context_, limits); }).find("without a tape"),
            std::string::npos);
}

}  // namespace
}  // namespace nunchi::testing
