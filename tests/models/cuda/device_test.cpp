// A whole Transformer on the GPU: longer training, more kinds of search, bf16, batches.
// every_model_test.cpp tests every family.
#include <algorithm>

#include "nunchi/decoding/searcher.h"
#include "tests/models/cuda/found.h"
#include "tests/models/cuda/trained.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

TransformerConfig config_of(nn::NormPlacement placement) {
  TransformerConfig config = small_config(211);
  config.width = 128;
  config.heads = 4;
  config.feed_forward = 256;
  config.norm_placement = placement;
  return config;
}

Trained trained_on(ContextBase& context, const TransformerConfig& config, int steps) {
  const auto model = make_small<Transformer>(context, config, {.gradients = true});
  const std::vector<Tokens> sentences = sentences_of({5, 1, 9, 33, 7, 64}, 211, 1);
  const PairBatch batch = pair_batch(context, sentences, sentences, 211);
  return train(model->parameters(), steps, static_cast<double>(batch.target.rows.rows),
               [&] { return model->loss(batch, {.smoothing = 0.1}); });
}

TEST(CudaModel, FiftyLossesAgreeWithTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const auto placement : {nn::NormPlacement::post, nn::NormPlacement::pre}) {
    TransformerConfig config = config_of(placement);
    config.dropout = config.attention_dropout = config.activation_dropout = 0.1f;
    const Trained run = expect_learned_as_on_cpu(
        [&](ContextBase& context) { return trained_on(context, config, 50); });
    EXPECT_LT(run.losses.back(), run.losses.front() - 0.5);
  }
}

TEST(CudaModel, TheSameRunGivesTheSameBits) {
  SKIP_WITHOUT_GPU();
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    TransformerConfig config = config_of(nn::NormPlacement::post);
    config.dropout = config.attention_dropout = 0.1f;
    const auto weights = [&] {
      CudaContext context({.precision = precision});
      return trained_on(context, config, 10).weights;
    };
    EXPECT_TRUE(same_bits(weights(), weights())) << name_of(precision);
  }
}

std::vector<Hypotheses> found_on(ContextBase& context, const TransformerConfig& config,
                                 const SearchOptions& options) {
  const auto model = make_small<Transformer>(context, config, {});
  std::vector<Tokens> sources = sentences_of({5, 1, 9, 33, 7, 64, 20}, 211, 4);
  for (Tokens& source : sources) source.push_back(2);
  return search(*model, {.source = make_token_batch(context, sources, 211), .tokens = kTokens},
                options);
}

void expect_found_as_on_cpu(const TransformerConfig& config, const SearchOptions& options) {
  CpuContext cpu({.threads = 2});
  CudaContext cuda({.precision = Precision::f32});
  expect_found_alike(found_on(cuda, config, options), found_on(cpu, config, options));
}

TEST(CudaModel, SearchesFindTheSameAsOnTheCpu) {
  SKIP_WITHOUT_GPU();
  std::vector<SearchOptions> all(4);
  all[0].beam_size = 1;
  all[1] = {.beam_size = 4, .n_best = 4};
  all[2] = {.beam_size = 3, .min_length = 5, .no_repeat_ngram = 2};
  all[3] = {.beam_size = 1, .n_best = 3, .sample = true, .top_k = 20, .top_p = 0.9, .seed = 5};
  for (SearchOptions& options : all) {
    options.max_length = 30;
    for (const auto placement : {nn::NormPlacement::post, nn::NormPlacement::pre}) {
      expect_found_as_on_cpu(config_of(placement), options);
    }
  }
}

TEST(CudaModel, ShortSearchesFindTheSameAsOnTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t max_length : {1, 2, 3}) {
    for (const int beam : {1, 4}) {
      expect_found_as_on_cpu(config_of(nn::NormPlacement::pre),
                             {.beam_size = beam, .max_length = max_length});
    }
  }
}

// The log-probability of the hypothesis's tokens, including </s> if it ended, computed on the CPU.
double score_on_cpu(const Transformer& model, ContextBase& cpu, const Tokens& source,
                    const Hypothesis& found) {
  const std::int64_t vocabulary = model.target_vocabulary();
  const PairBatch batch =
      pair_batch(cpu, std::span(&source, 1), std::span(&found.tokens, 1), vocabulary);
  const std::vector<float> logits = logits_of(model, batch);
  Tokens scored = found.tokens;
  if (found.ended_by_eos) scored.push_back(2);
  double total = 0;
  for (std::size_t i = 0; i < scored.size(); ++i) {
    const float* row = logits.data() + i * static_cast<std::size_t>(vocabulary);
    double sum = 0;
    for (std::int64_t v = 0; v < vocabulary; ++v) sum += std::exp(static_cast<double>(row[v]));
    total += static_cast<double>(row[scored[i]]) - std::log(sum);
  }
  return total;
}

// The row counts reach every GEMM kernel: one row, a few, some dozens, more than a hundred.
TEST(CudaModel, HypothesesInBf16HaveTheirScoresOnTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const auto placement : {nn::NormPlacement::post, nn::NormPlacement::pre}) {
    TransformerConfig config = config_of(placement);
    config.width = 256;
    CpuContext cpu({.threads = 2});
    CudaContext cuda;
    const auto on_cpu = make_small<Transformer>(cpu, config),
               on_gpu = make_small<Transformer>(cuda, config);
    for (const std::size_t sentences : {1, 3, 30}) {
      std::vector<std::int32_t> lengths;
      for (std::size_t i = 0; i < sentences; ++i) lengths.push_back(1 + i * 7 % 19);
      std::vector<Tokens> sources = sentences_of(lengths, 211, 8);
      for (Tokens& source : sources) source.push_back(2);
      for (const int beam : {1, 4}) {
        const auto found =
            search(*on_gpu, {.source = make_token_batch(cuda, sources, 211), .tokens = kTokens},
                   {.beam_size = beam, .max_length = 12});
        for (std::size_t i = 0; i < sentences; ++i) {
          const Hypothesis& best = found[i][0];
          EXPECT_NEAR(best.log_probability, score_on_cpu(*on_cpu, cpu, sources[i], best),
                      0.02 * static_cast<double>(best.token_scores.size()))
              << "sentence " << i << " of " << sentences << ", beam " << beam;
        }
      }
    }
  }
}

TEST(CudaModel, WithTheDeterministicOptionBatchesDoNotChangeTheResults) {
  SKIP_WITHOUT_GPU();
  CudaContext context({.deterministic = true});
  const auto model = make_small<Transformer>(context, config_of(nn::NormPlacement::post), {});
  std::vector<Tokens> sources;
  for (std::int32_t i = 0; i < 60; ++i)
    sources.push_back(sentences_of({1 + i % 23}, 211, 50u + static_cast<unsigned>(i))[0]);
  for (Tokens& source : sources) source.push_back(2);
  const auto tokens_of = [&](std::size_t batch) {
    std::vector<Tokens> found;
    for (std::size_t i = 0; i < sources.size(); i += batch) {
      const auto chunk = std::span(sources).subspan(i, std::min(batch, sources.size() - i));
      for (const Hypotheses& h :
           search(*model, {.source = make_token_batch(context, chunk, 211), .tokens = kTokens},
                  {.beam_size = 4, .max_length = 20})) {
        found.push_back(h[0].tokens);
      }
    }
    return found;
  };
  const std::vector<Tokens> alone = tokens_of(1);
  for (const std::size_t batch : {2, 7, 60}) EXPECT_EQ(tokens_of(batch), alone) << batch;
}

}  // namespace
}  // namespace nunchi::testing
