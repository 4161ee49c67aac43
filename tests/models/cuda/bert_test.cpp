// The bidirectional encoder on the GPU: what it says and learns is what the CPU's does.
#include "nunchi/autograd/tape.h"
#include "nunchi/ops/gather_rows.h"
#include "nunchi/ops/top_tokens.h"
#include "nunchi/training/optimizer.h"
#include "tests/kernels/cuda/compare.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

BertConfig config_of(BertConfig config) {
  config.width = 128;
  config.heads = 4;
  config.feed_forward = 256;
  config.dropout = config.attention_dropout = 0.1f;
  config.labels = {"a", "b", "c"};
  return config;
}

const std::vector<std::int32_t> kLengths = {5, 3, 9, 33, 7, 64};

enum class Task : std::uint8_t { fill, classify };

// Losses per token of so many steps.
std::vector<double> losses_on(ContextBase& context, const BertConfig& config, Task task) {
  const auto model = make_small<Bert>(context, config, {.gradients = true});
  AdamOptimizer optimizer(model->parameters(), {.max_norm = 1});
  const std::vector<Tokens> sentences = sentences_of(kLengths, 211, 1);
  const MaskedBatch masked = make_masked_batch(context, masked_texts(sentences), 211);
  const TokenBatch texts = make_token_batch(context, sentences, 211);
  const auto tokens = static_cast<double>(task == Task::fill ? masked.masked.rows : 6);
  std::vector<double> losses;
  for (int step = 0; step < 30; ++step) {
    context.set_random({.seed = 3, .step = static_cast<std::uint64_t>(step)});
    Tape tape(context);
    const VocabularyLoss loss = task == Task::fill ? loss_of(*model, masked, {.smoothing = 0.1})
                                                   : label_loss_of(*model, texts);
    tape.backward(loss.total);
    optimizer.step(
        {.learning_rate = 2e-5 * (step + 1), .tokens = tokens, .losses = loss.total.value()});
    losses.push_back(to_host<double>(loss.total.value())[0] / tokens);
  }
  return losses;
}

TEST(CudaModel, BertsLossesAreTheCpus) {
  SKIP_WITHOUT_GPU();
  for (const BertConfig& config :
       {config_of(small_bert_config(211)), config_of(modern_bert_config(211))}) {
    for (const Task task : {Task::fill, Task::classify}) {
      CpuContext cpu({.threads = 2});
      CudaContext f32({.precision = Precision::f32}), bf16;
      const std::vector<double> expected = losses_on(cpu, config, task),
                                exact = losses_on(f32, config, task),
                                rounded = losses_on(bf16, config, task);
      EXPECT_LT(expected.back(), expected.front());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(exact[i], expected[i], 2e-4) << "step " << i;
        EXPECT_NEAR(rounded[i], expected[i], 0.1) << "step " << i;
      }
    }
  }
}

TEST(CudaModel, BertsScoresAreTheCpus) {
  SKIP_WITHOUT_GPU();
  expect_like_cpu(
      [&](ContextBase& context, DType dtype) {
        const auto model =
            make_small<Bert>(context, config_of(small_bert_config(211)), {.dtype = dtype});
        const std::vector<Tokens> sentences = sentences_of(kLengths, 211, 1);
        const MaskedBatch batch = make_masked_batch(context, masked_texts(sentences), 211);
        const Variable rows = rows_to_say(*model, batch);
        const Ragged each = make_ragged(context, std::vector<std::int32_t>(kLengths.size(), 1));
        const Variable summary = model->summary(batch.inputs, each);
        const Tensor scores = model->scores(rows, batch.masked),
                     labels = model->label_scores(summary);
        // Candidates are told apart by less than bf16 can hold.
        EXPECT_EQ(scores.dtype(), DType::f32);
        EXPECT_EQ(labels.dtype(), DType::f32);
        return std::vector<Output>{output("hidden", rows.value()),
                                   output("scores", scores.rows(0, batch.masked.rows)),
                                   output("labels", labels.rows(0, each.rows))};
      },
      {.f32 = 1e-5, .bf16 = 3e-2});
}

}  // namespace
}  // namespace nunchi::testing
