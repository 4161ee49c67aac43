// Recurrent models on the GPU: what they say, learn and find is what the CPU's do.
#include "nunchi/autograd/tape.h"
#include "nunchi/decoding/search.h"
#include "nunchi/training/optimizer.h"
#include "tests/kernels/cuda/compare.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

constexpr std::int64_t kVocabulary = 211;

std::vector<RnnConfig> configs() {
  std::vector<RnnConfig> all = all_small_rnns(kVocabulary);
  for (RnnConfig& config : all) config.width = 128;
  return all;
}

struct Trained {
  std::vector<double> losses;  // per token
  std::vector<float> weights;
};

Trained train(ContextBase& context, const RnnConfig& config, int steps) {
  const auto model = make_small<Rnn>(context, config, {.gradients = true});
  AdamOptimizer optimizer(model->parameters(), {.max_norm = 1});
  const std::vector<Tokens> sentences = sentences_of({5, 1, 9, 33, 7, 64}, kVocabulary, 1);
  const PairBatch batch =
      make_pair_batch(context, sentences, sentences, {kVocabulary, kVocabulary});
  const auto tokens = static_cast<double>(batch.target.rows.rows);
  Trained run;
  for (int step = 0; step < steps; ++step) {
    context.set_random({.seed = 3, .step = static_cast<std::uint64_t>(step)});
    Tape tape(context);
    const VocabularyLoss loss = model->loss(batch, {.smoothing = 0.1});
    tape.backward(loss.total);
    optimizer.step(
        {.learning_rate = 1e-4 * (step + 1), .tokens = tokens, .losses = loss.total.value()});
    run.losses.push_back(to_host<double>(loss.total.value())[0] / tokens);
  }
  run.weights = to_host<float>(model->parameters().weights());
  return run;
}

TEST(CudaRnn, LossesAreTheCpus) {
  SKIP_WITHOUT_GPU();
  for (RnnConfig config : configs()) {
    SCOPED_TRACE(config.to_json());
    config.dropout = 0.1f;
    CpuContext cpu({.threads = 2});
    CudaContext f32({.precision = Precision::f32}), bf16;
    const Trained expected = train(cpu, config, 20), exact = train(f32, config, 20),
                  rounded = train(bf16, config, 20);
    EXPECT_LT(expected.losses.back(), expected.losses.front() - 0.1);
    for (std::size_t i = 0; i < 20; ++i) {
      EXPECT_NEAR(exact.losses[i], expected.losses[i], 1e-3) << "step " << i;
      EXPECT_NEAR(rounded.losses[i], expected.losses[i], 0.1) << "step " << i;
    }
  }
}

TEST(CudaRnn, TheSameRunGivesTheSameBits) {
  SKIP_WITHOUT_GPU();
  for (const RnnAttention attention : {RnnAttention::additive, RnnAttention::dot}) {
    RnnConfig config = small_rnn(CellKind::lstm, attention, true, kVocabulary);
    config.width = 128;
    config.dropout = 0.1f;
    config.free_running = 0.3f;
    const auto weights = [&] {
      CudaContext context;
      return train(context, config, 5).weights;
    };
    EXPECT_TRUE(same_bits(weights(), weights()));
  }
}

std::vector<Hypotheses> found_on(ContextBase& context, const RnnConfig& config,
                                 const SearchOptions& options) {
  const auto model = make_small<Rnn>(context, config, {});
  Searcher searcher(*model, options);
  std::vector<Hypotheses> all;
  // Several batches: replayed steps serve the second one too.
  for (const std::uint64_t seed : {4, 5}) {
    std::vector<Tokens> sources = sentences_of({5, 1, 9, 33, 7, 64, 20}, kVocabulary, seed);
    for (Tokens& source : sources) source.push_back(2);
    const TokenBatch batch = make_token_batch(context, sources, kVocabulary);
    // The second has more tokens in its first step.
    std::vector<Tokens> prefixes = {{}, {7, 8}, {}, {}, {9}, {}, {}};
    if (seed == 5) prefixes.assign(sources.size(), Tokens(12, 7));
    for (Hypotheses& found : searcher({.source = batch, .prefixes = prefixes})) {
      all.push_back(std::move(found));
    }
  }
  return all;
}

TEST(CudaRnn, SearchesFindWhatTheCpuFinds) {
  SKIP_WITHOUT_GPU();
  for (const int beam : {1, 4}) {
    const SearchOptions options{.beam_size = beam, .n_best = beam, .max_length = 30};
    for (const RnnConfig& config : configs()) {
      SCOPED_TRACE(config.to_json());
      CpuContext cpu({.threads = 2});
      CudaContext cuda({.precision = Precision::f32});
      const auto expected = found_on(cpu, config, options), found = found_on(cuda, config, options);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].size(), expected[i].size());
        for (std::size_t h = 0; h < found[i].size(); ++h) {
          EXPECT_EQ(found[i][h].tokens, expected[i][h].tokens);
          EXPECT_NEAR(found[i][h].score, expected[i][h].score, 1e-4);
        }
      }
    }
  }
}

}  // namespace
}  // namespace nunchi::testing
