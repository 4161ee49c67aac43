// A classifier scores and learns on the GPU as on the CPU.
#include "tests/models/cuda/trained.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

const std::vector<std::int32_t> kLengths = {5, 3, 9, 33, 7, 64};

BertConfig classifier() {
  BertConfig config = small_bert_config(211);
  config.width = 128;
  config.heads = 4;
  config.feed_forward = 256;
  config.labels = {"a", "b", "c"};
  return config;
}

TEST(CudaModelBert, LearnsToClassifyAsOnTheCpu) {
  SKIP_WITHOUT_GPU();
  BertConfig config = classifier();
  config.dropout = config.attention_dropout = 0.1f;
  expect_learned_as_on_cpu([&](ContextBase& context) {
    const auto model = make_small<Bert>(context, config, {.gradients = true});
    const TokenBatch texts = make_token_batch(context, sentences_of(kLengths, 211, 1), 211);
    return train(model->parameters(), 30, 6, [&] { return label_loss_of(*model, texts); });
  });
}

// Scores are f32, because bf16 cannot distinguish close candidates.
TEST(CudaModelBert, ScoresAreInF32AndAgreeWithTheCpu) {
  SKIP_WITHOUT_GPU();
  expect_like_cpu(
      [&](ContextBase& context, DType dtype) {
        const auto model = make_small<Bert>(context, classifier(), {.dtype = dtype});
        const std::vector<Tokens> texts = sentences_of(kLengths, 211, 1);
        const MaskedBatch batch = make_masked_batch(context, masked_texts(texts), 211);
        const Ragged row_per_text =
            make_ragged(context, std::vector<std::int32_t>(kLengths.size(), 1));
        const Variable rows = masked_rows(*model, batch);
        const Tensor scores = model->scores(rows, batch.masked),
                     labels = model->label_scores(model->summary(batch.inputs, row_per_text));
        EXPECT_EQ(scores.dtype(), DType::f32);
        EXPECT_EQ(labels.dtype(), DType::f32);
        return std::vector<Output>{output("hidden", rows.value()),
                                   output("scores", scores.rows(0, batch.masked.rows)),
                                   output("labels", labels.rows(0, row_per_text.rows))};
      },
      {.f32 = 1e-5, .bf16 = 3e-2});
}

}  // namespace
}  // namespace nunchi::testing
