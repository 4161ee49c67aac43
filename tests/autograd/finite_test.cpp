// TapeOptions::check_finite.
#include "nunchi/autograd/tape.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

class FiniteCheck : public ::testing::Test {
 protected:
  FiniteCheck() : context_({.threads = 1}) {
    model_ = make_small<Transformer>(context_, small_config(), {.gradients = true});
    const std::vector<Tokens> sentences = sentences_of({5, 3}, 37, 1);
    batch_ = pair_batch(context_, sentences, sentences, 37);
  }
  // The error of a training step with the check; "no error" if there is none.
  std::string error_message() {
    fill(model_->parameters().gradients(), 0);
    try {
      Tape tape(context_, {.check_finite = true});
      tape.backward(model_->loss(batch_, {.smoothing = 0.1}).total);
    } catch (const NotFinite& error) {
      return error.what();
    }
    return "no error";
  }
  void set(const std::string& parameter, std::size_t index, float value) {
    const Tensor& tensor = model_->parameters().find(parameter)->variable.value();
    std::vector<float> values = to_host<float>(tensor);
    values[index] = value;
    copy_from_host<float>(values, tensor);
    model_->parameters().changed();
  }

  CpuContext context_;
  std::unique_ptr<Transformer> model_;
  PairBatch batch_;
};

TEST_F(FiniteCheck, AcceptsAFiniteStep) { EXPECT_EQ(error_message(), "no error"); }

TEST_F(FiniteCheck, NamesTheFirstOperationThatIsNotFinite) {
  set("encoder.layers.1.feed_forward.down.bias", 3, NAN);
  const std::string forward = error_message();
  EXPECT_TRUE(says(forward, "feed_forward (operation ")) << forward;
  EXPECT_TRUE(says(forward, "of the forward pass")) << forward;
  EXPECT_TRUE(says(forward, "40]")) << forward;
}

TEST_F(FiniteCheck, ChecksGradientsToo) {
  // Finite in the forward pass: the norm's output is its bias. Its input's gradient is infinite.
  set("shared.embedding.weight", 40, 3e38f);
  EXPECT_NE(error_message(), "no error");
}

TEST_F(FiniteCheck, IsOffByDefault) {
  set("encoder.layers.1.feed_forward.down.bias", 3, NAN);
  Tape tape(context_);
  EXPECT_NO_THROW(tape.backward(model_->loss(batch_, {}).total));
}

}  // namespace
}  // namespace nunchi::testing
