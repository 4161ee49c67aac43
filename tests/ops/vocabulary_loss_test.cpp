// The fused vocabulary loss against a product followed by cross-entropy.
#include "nunchi/ops/vocabulary_loss.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/ops/linear.h"
#include "tests/support.h"

namespace nunchi::testing {
namespace {

constexpr std::int64_t kRows = 9, kCapacity = 16, kWidth = 20, kVocabulary = 37;
constexpr double kSmoothing = 0.1;

class VocabularyLossTest : public ::testing::Test {
 protected:
  VocabularyLossTest() {
    context_.arena().poison();
    hidden_.bind(random_tensor<float>(context_, {kCapacity, kWidth}, 1),
                 zeros(context_, DType::f32, {kCapacity, kWidth}));
    weight_.bind(random_tensor<float>(context_, {kVocabulary, kWidth}, 2),
                 zeros(context_, DType::f32, {kVocabulary, kWidth}));
    for (const Variable& variable : {hidden_, weight_}) {
      Variable(variable).share_version(std::make_shared<std::uint64_t>(1));
    }
  }

  VocabularyLoss run(std::int64_t chunk) {
    fill(hidden_.gradient(), 0);
    fill(weight_.gradient(), 0);
    Tape tape(context_);
    const VocabularyLoss loss = vocabulary_loss(hidden_, weight_, targets_, batch_,
                                                {.smoothing = kSmoothing, .chunk = chunk});
    tape.backward(loss.total);
    return loss;
  }

  CpuContext context_{CpuOptions{.threads = 2}};
  const std::vector<std::int32_t> lengths_ = {4, 1, 4};
  const Ragged batch_ = make_ragged(context_, lengths_);
  const std::vector<std::int32_t> labels_ = {3, 0, 36, 2, 1, 4, 4, 35, 7, 0, 0, 0, 0, 0, 0, 0};
  const Tensor targets_ = from_host(context_, labels_, {kCapacity});
  Variable hidden_{Tensor(), true}, weight_{Tensor(), true};
};

TEST_F(VocabularyLossTest, EqualsAProductFollowedByCrossEntropy) {
  const std::vector<double> h = to_host_f64(hidden_.value()), w = to_host_f64(weight_.value());
  std::vector<double> d_hidden(h.size(), 0), d_weight(w.size(), 0), losses(kCapacity, 0);
  for (std::size_t t = 0; t < kRows; ++t) {
    std::vector<double> logits(kVocabulary, 0);
    double sum = 0;
    for (std::size_t v = 0; v < kVocabulary; ++v) {
      for (std::size_t c = 0; c < kWidth; ++c) logits[v] += h[t * kWidth + c] * w[v * kWidth + c];
      sum += std::exp(logits[v]);
    }
    for (std::size_t v = 0; v < kVocabulary; ++v) {
      const double target_probability =
          kSmoothing / kVocabulary +
          (static_cast<std::int32_t>(v) == labels_[t] ? 1 - kSmoothing : 0);
      losses[t] -= target_probability * (logits[v] - std::log(sum));
      const double d_logit = std::exp(logits[v]) / sum - target_probability;
      for (std::size_t c = 0; c < kWidth; ++c) {
        d_hidden[t * kWidth + c] += d_logit * w[v * kWidth + c];
        d_weight[v * kWidth + c] += d_logit * h[t * kWidth + c];
      }
    }
  }
  for (const std::int64_t chunk : {1, 5, 8, 512}) {
    const VocabularyLoss loss = run(chunk);
    EXPECT_LE(largest_difference(to_host<float>(loss.tokens), losses), 1e-5) << chunk;
    EXPECT_LE(largest_difference(to_host<float>(hidden_.gradient()), d_hidden), 1e-5) << chunk;
    EXPECT_LE(largest_difference(to_host<float>(weight_.gradient()), d_weight), 1e-5) << chunk;
  }
}

TEST_F(VocabularyLossTest, WithoutATapeGivesTheSameLossAndNoGradient) {
  const double recorded = to_host<double>(run(8).total.value())[0];
  fill(weight_.gradient(), 0);
  const VocabularyLoss loss =
      vocabulary_loss(hidden_, weight_, targets_, batch_, {.smoothing = kSmoothing, .chunk = 8});
  EXPECT_EQ(to_host<double>(loss.total.value())[0], recorded);
  for (const float value : to_host<float>(weight_.gradient())) EXPECT_EQ(value, 0);
}

}  // namespace
}  // namespace nunchi::testing
