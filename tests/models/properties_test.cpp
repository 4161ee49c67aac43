// What must hold for every model, whatever its weights: causality, and sentences that do not notice
// their batch.
#include <algorithm>
#include <numeric>

#include "nunchi/kernels/product.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

TransformerConfig base_shaped() {
  // One layer of the base model's shapes: the products are those that the base model runs.
  TransformerConfig config = TransformerConfig::preset("base", 1000);
  config.encoder_layers = config.decoder_layers = 1;
  return config;
}

TEST(Causality, AFutureTokenChangesNoEarlierLogit) {
  CpuContext context({.threads = 2});
  context.arena().poison();
  for (const auto& [name, config] : configs_of_all_positions()) {
    SCOPED_TRACE(name);
    const auto model = make_transformer(context, config);
    const std::vector<Tokens> source = sentences_of({9, 70}, 37, 1);
    std::vector<Tokens> target = sentences_of({5, 130}, 37, 2);
    const auto logits = [&] {
      return logits_of(*model, make_pair_batch(context, source, target, {37, 37}));
    };
    const std::vector<float> before = logits();
    const std::size_t first_row = target[0].size() + 1;  // of the second sentence
    for (const std::size_t changed : {0, 1, 30, 63, 64, 100, 129}) {
      std::int32_t& token = target[1][changed];
      const std::int32_t kept = std::exchange(token, (token + 1) % 37);
      const std::vector<float> after = logits();
      token = kept;
      // Row r has seen <s> and tokens before r: token `changed` is first seen in row changed + 1.
      const std::size_t unchanged = (first_row + changed + 1) * 37;
      EXPECT_TRUE(std::equal(before.begin(),
                             before.begin() + static_cast<std::ptrdiff_t>(unchanged), after.begin(),
                             [](float a, float b) { return same_bits<float>({a}, {b}); }))
          << "token " << changed;
      EXPECT_FALSE(same_bits(before, after)) << "the token must matter to later rows";
    }
  }
}

class BatchInvariance : public ::testing::TestWithParam<int> {};

// Each sentence alone, and in batches of 2 to 64 in another order, to the bit.
TEST_P(BatchInvariance, ASentenceGetsTheSameLogitsInAnyBatch) {
  if (!kernels::rows_are_independent()) {
    GTEST_SKIP() << kernels::product_library()
                 << " does not keep a row's bits when others are added";
  }
  CpuContext context({.threads = GetParam()});
  std::vector<NamedConfig> configs = configs_of_all_positions();
  configs.push_back({"the base model's shapes", base_shaped()});
  for (const auto& [name, config] : configs) {
    SCOPED_TRACE(name);
    const std::int64_t vocabulary = config.target_vocabulary;
    const auto model = make_transformer(context, config);
    std::vector<std::int32_t> source_lengths, target_lengths;
    for (int b = 0; b < 64; ++b) {
      source_lengths.push_back(1 + (b * 7) % 40);
      target_lengths.push_back((b * 11) % 35);
    }
    const std::vector<Tokens> sources = sentences_of(source_lengths, vocabulary, 1);
    const std::vector<Tokens> targets = sentences_of(target_lengths, vocabulary, 2);
    std::vector<std::vector<float>> alone;
    for (std::size_t b = 0; b < 64; ++b) {
      alone.push_back(logits_of(
          *model, make_pair_batch(context, std::span(sources).subspan(b, 1),
                                  std::span(targets).subspan(b, 1), {vocabulary, vocabulary})));
    }
    for (const std::size_t size : {2, 3, 5, 8, 17, 33, 64}) {
      std::vector<std::size_t> order(64);
      for (std::size_t i = 0; i < 64; ++i) order[i] = (i * 29 + size) % 64;
      for (std::size_t first = 0; first < 64; first += size) {
        const std::size_t count = std::min<std::size_t>(size, 64 - first);
        std::vector<Tokens> some_sources, some_targets;
        for (std::size_t i = 0; i < count; ++i) {
          some_sources.push_back(sources[order[first + i]]);
          some_targets.push_back(targets[order[first + i]]);
        }
        const std::vector<float> together = logits_of(
            *model, make_pair_batch(context, some_sources, some_targets, {vocabulary, vocabulary}));
        auto at = together.begin();
        for (std::size_t i = 0; i < count; ++i) {
          const std::vector<float>& expected = alone[order[first + i]];
          const std::vector<float> found(at, at + static_cast<std::ptrdiff_t>(expected.size()));
          at += static_cast<std::ptrdiff_t>(expected.size());
          ASSERT_TRUE(same_bits(found, expected))
              << "sentence " << order[first + i] << " in a batch of " << count << ", width "
              << config.width << ", differs by " << largest_difference(found, expected);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, BatchInvariance, ::testing::Values(1, 2, 4));

TEST(Parameters, TheBaseModelHasThePapersCount) {
  const TransformerConfig config = TransformerConfig::preset("base", 37000);
  const std::int64_t C = 512, F = 2048, L = 6, V = 37000;
  const std::int64_t expected = V * C + L * (4 * C * C + 4 * C + 2 * C * F + F + C + 4 * C) +
                                L * (8 * C * C + 8 * C + 2 * C * F + F + C + 6 * C);
  EXPECT_EQ(Transformer(config).parameters().count(), expected);
  EXPECT_EQ(expected, 63082496);
}

TEST(Parameters, GroupedHeadsAndMissingBiasesAreCounted) {
  TransformerConfig config = TransformerConfig::preset("base", 37000);
  config.kv_heads = 2;
  config.head_width = 32;
  config.bias = false;
  config.position = nn::PositionKind::relative;
  // Of 8 heads of 32 columns, two of keys and two of values.
  const std::int64_t C = 512, F = 2048, L = 6, V = 37000, Q = 8 * 32, K = 2 * 32;
  const std::int64_t attention = C * (Q + 2 * K) + Q * C;
  EXPECT_EQ(Transformer(config).parameters().count(),
            V * C + L * (3 * attention + 2 * (2 * C * F) + 2 * C * 5) + 2 * 32 * 8);
}

TEST(Parameters, QueriesStartSmallerWhereScoresAreNotScaled) {
  CpuContext context;
  TransformerConfig config = TransformerConfig::preset("base", 100);
  config.encoder_layers = config.decoder_layers = 1;
  const auto scaled = make_transformer(context, config);
  config.scale_attention = false;
  const auto plain = make_transformer(context, config);
  const auto weights = [&](const Transformer& model, const char* name) {
    return to_host<float>(model.parameters().find(name)->variable.value());
  };
  const float factor = 1 / std::sqrt(64.0f);
  for (const char* name : {"encoder.layers.0.self_attention.qkv.weight",
                           "decoder.layers.0.cross_attention.query.weight"}) {
    const std::vector<float> before = weights(*scaled, name), after = weights(*plain, name);
    for (std::size_t i = 0; i < before.size(); ++i) {
      ASSERT_EQ(after[i], i < 512 * 512 ? before[i] * factor : before[i]) << name << " at " << i;
    }
  }
}

TEST(Parameters, TheSameSeedGivesTheSameWeightsOnAnyNumberOfThreads) {
  CpuContext one({.threads = 1}), four({.threads = 4});
  const auto a = make_transformer(one, small_config()), b = make_transformer(four, small_config());
  EXPECT_TRUE(same_bits(to_host<float>(a->parameters().weights()),
                        to_host<float>(b->parameters().weights())));
}

TEST(Parameters, StartAsThePaperSays) {
  CpuContext context;
  TransformerConfig config = TransformerConfig::preset("base", 2000);
  config.encoder_layers = config.decoder_layers = 1;
  const auto model = make_transformer(context, config);
  const auto deviation = [&](const char* name) {
    const std::vector<float> values =
        to_host<float>(model->parameters().find(name)->variable.value());
    double squares = 0;
    for (const float value : values) squares += double{value} * value;
    return std::sqrt(squares / static_cast<double>(values.size()));
  };
  EXPECT_NEAR(deviation("shared.embedding.weight"), 1 / std::sqrt(512.0), 1e-3);
  // Xavier's uniform distribution of a 512 × 512 matrix, also where three are stacked.
  const double xavier = std::sqrt(2.0 / 1024);
  EXPECT_NEAR(deviation("encoder.layers.0.self_attention.qkv.weight"), xavier, 1e-3);
  EXPECT_NEAR(deviation("decoder.memory_kv.weight"), xavier, 1e-3);
  EXPECT_NEAR(deviation("encoder.layers.0.feed_forward.up.weight"), std::sqrt(2.0 / 2560), 1e-3);
  EXPECT_EQ(deviation("encoder.layers.0.feed_forward.up.bias"), 0);
}

}  // namespace
}  // namespace nunchi::testing
