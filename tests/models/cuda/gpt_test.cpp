// A language model on the GPU: what it learns and says is what the CPU's does.
#include "nunchi/autograd/tape.h"
#include "nunchi/decoding/search.h"
#include "nunchi/training/optimizer.h"
#include "tests/kernels/cuda/compare.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

constexpr std::int64_t kVocabulary = 211;

GptConfig config_of() {
  GptConfig config = small_gpt_config(kVocabulary);
  config.width = 128;
  config.heads = 4;
  config.feed_forward = 256;
  return config;
}

std::vector<double> losses_on(ContextBase& context, const GptConfig& config) {
  const auto model = make_small<Gpt>(context, config, {.gradients = true});
  AdamOptimizer optimizer(model->parameters(), {.max_norm = 1});
  const TextBatch batch =
      make_text_batch(context, sentences_of({5, 2, 9, 33, 7, 150}, kVocabulary, 1), kVocabulary);
  const auto tokens = static_cast<double>(batch.inputs.rows.rows);
  std::vector<double> losses;
  for (int step = 0; step < 30; ++step) {
    context.set_random({.seed = 3, .step = static_cast<std::uint64_t>(step)});
    Tape tape(context);
    const VocabularyLoss loss = model->loss(batch, {});
    tape.backward(loss.total);
    optimizer.step(
        {.learning_rate = 5e-6 * (step + 1), .tokens = tokens, .losses = loss.total.value()});
    losses.push_back(to_host<double>(loss.total.value())[0] / tokens);
  }
  return losses;
}

TEST(CudaModelGpt, LossesAreTheCpus) {
  SKIP_WITHOUT_GPU();
  GptConfig config = config_of();
  config.dropout = config.attention_dropout = 0.1f;
  CpuContext cpu({.threads = 2});
  CudaContext f32({.precision = Precision::f32}), bf16;
  const std::vector<double> expected = losses_on(cpu, config), exact = losses_on(f32, config),
                            rounded = losses_on(bf16, config);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(exact[i], expected[i], 1e-4) << "step " << i;
    EXPECT_NEAR(rounded[i], expected[i], 0.1) << "step " << i;
  }
}

// One batch after another in the same memory; prompts become longer, so that memory has to grow.
std::vector<Tokens> found_on(ContextBase& context, const SearchOptions& options) {
  const auto model = make_small<Gpt>(context, config_of());
  Searcher searcher(*model, options);
  std::vector<Tokens> all;
  for (const std::int32_t length : {3, 3, 70, 5, 110, 1}) {
    const std::vector<Tokens> prompts =
        sentences_of({length, length + 2, 1}, kVocabulary, static_cast<std::uint64_t>(length));
    const TokenBatch none = make_token_batch(context, std::vector<Tokens>(3), kVocabulary);
    for (const Hypotheses& found : searcher({.source = none,
                                   .prefixes = prompts,
                                   .special = {.begin = 1, .end = -1},
                                   .begins = false})) {
      all.push_back(found.front().tokens);
    }
  }
  return all;
}

TEST(CudaModelGpt, SearchesFindWhatTheCpuFinds) {
  SKIP_WITHOUT_GPU();
  for (const SearchOptions& options :
       {SearchOptions{.max_length = 40}, SearchOptions{.beam_size = 3, .max_length = 25},
        SearchOptions{.sample = true, .top_k = 20, .seed = 5, .max_length = 40}}) {
    CpuContext cpu({.threads = 2});
    CudaContext cuda({.precision = Precision::f32});
    EXPECT_EQ(found_on(cuda, options), found_on(cpu, options));
  }
}

TEST(CudaModelGpt, WhatIsWatchedIsWhatIsFound) {
  SKIP_WITHOUT_GPU();
  CudaContext context({.precision = Precision::f32});
  const auto model = make_small<Gpt>(context, config_of());
  const std::vector<Tokens> prompts = sentences_of({6}, kVocabulary, 2);
  const TokenBatch none = make_token_batch(context, std::vector<Tokens>(1), kVocabulary);
  const SearchOptions options{.max_length = 60};
  const auto found = [&](const SearchWatch& watch) {
    return search(*model,
                  {.source = none,
                   .prefixes = prompts,
                   .special = {.begin = 1, .end = -1},
                   .begins = false,
                   .watch = watch},
                  options)[0][0]
        .tokens;
  };
  const Tokens whole = found({});
  std::size_t looks = 0;
  EXPECT_EQ(found([&](std::span<const std::int32_t> tokens) {
              EXPECT_TRUE(std::ranges::equal(tokens, std::span(whole).first(tokens.size())));
              ++looks;
              return true;
            }),
            whole);
  EXPECT_GE(looks, 6u);
  const Tokens stopped =
      found([](std::span<const std::int32_t> tokens) { return tokens.size() < 20; });
  EXPECT_GE(stopped.size(), 20u);
  EXPECT_LT(stopped.size(), 36u);
  EXPECT_TRUE(std::ranges::equal(stopped, std::span(whole).first(stopped.size())));
}

}  // namespace
}  // namespace nunchi::testing
