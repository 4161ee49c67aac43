// The number of parameters and their initial values.
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

TEST(Parameters, TheBaseModelHasThePapersCount) {
  const TransformerConfig config = preset_of<TransformerConfig>("base", 37000);
  const std::int64_t C = 512, F = 2048, L = 6, V = 37000;
  const std::int64_t expected = V * C + L * (4 * C * C + 4 * C + 2 * C * F + F + C + 4 * C) +
                                L * (8 * C * C + 8 * C + 2 * C * F + F + C + 6 * C);
  EXPECT_EQ(Transformer(config).parameters().count(), expected);
  EXPECT_EQ(expected, 63082496);
}

TEST(Parameters, TheCountDependsOnGroupedHeadsAndBiases) {
  TransformerConfig config = preset_of<TransformerConfig>("base", 37000);
  config.kv_heads = 2;
  config.head_width = 32;
  config.bias = false;
  config.position = nn::PositionKind::relative;
  // 8 heads of queries, 2 of keys and 2 of values, of 32 columns each.
  const std::int64_t C = 512, F = 2048, L = 6, V = 37000, Q = 8 * 32, K = 2 * 32;
  const std::int64_t attention = C * (Q + 2 * K) + Q * C;
  EXPECT_EQ(Transformer(config).parameters().count(),
            V * C + L * (3 * attention + 2 * (2 * C * F) + 2 * C * 5) + 2 * 32 * 8);
}

TEST(Parameters, QueriesStartSmallerIfScoresAreNotScaled) {
  CpuContext context;
  TransformerConfig config = preset_of<TransformerConfig>("base", 100);
  config.encoder_layers = config.decoder_layers = 1;
  const auto scaled = make_small<Transformer>(context, config);
  config.scale_attention = false;
  const auto plain = make_small<Transformer>(context, config);
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
  const auto a = make_small<Transformer>(one, small_config()),
             b = make_small<Transformer>(four, small_config());
  EXPECT_TRUE(same_bits(to_host<float>(a->parameters().weights()),
                        to_host<float>(b->parameters().weights())));
}

TEST(Parameters, InitialWeightsHaveTheUsualDeviations) {
  CpuContext context;
  TransformerConfig config = preset_of<TransformerConfig>("base", 2000);
  config.encoder_layers = config.decoder_layers = 1;
  const auto model = make_small<Transformer>(context, config);
  const auto deviation = [&](const char* name) {
    const std::vector<float> values =
        to_host<float>(model->parameters().find(name)->variable.value());
    double squares = 0;
    for (const float value : values) squares += double{value} * value;
    return std::sqrt(squares / static_cast<double>(values.size()));
  };
  EXPECT_NEAR(deviation("shared.embedding.weight"), 1 / std::sqrt(512.0), 1e-3);
  // Xavier's uniform distribution for a 512 × 512 matrix, also if several such matrices are
  // stacked.
  const double xavier = std::sqrt(2.0 / 1024);
  EXPECT_NEAR(deviation("encoder.layers.0.self_attention.qkv.weight"), xavier, 1e-3);
  EXPECT_NEAR(deviation("decoder.memory_kv.weight"), xavier, 1e-3);
  EXPECT_NEAR(deviation("encoder.layers.0.feed_forward.up.weight"), std::sqrt(2.0 / 2560), 1e-3);
  EXPECT_EQ(deviation("encoder.layers.0.feed_forward.up.bias"), 0);
}

}  // namespace
}  // namespace nunchi::testing
