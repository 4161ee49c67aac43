// What a trace shows is what was computed.
#include "nunchi/trace/trace.h"

#include "nunchi/autograd/tape.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

struct Traced {
  Trace trace;
  TransformerConfig config;
};

// For every layer and head: the traced weights' rows sum to one, and weights × V is what the fused
// kernel gave.
void check_attention(const Traced& traced, const std::string& stack, int layer,
                     const std::string& part, bool causal) {
  const auto find = [&](Tap tap) { return traced.trace.find(tap, stack, layer, part); };
  const TapRecord *weights = find(Tap::attention_weights), *values = find(Tap::value),
                  *context = find(Tap::attention_context);
  ASSERT_NE(weights, nullptr);
  ASSERT_NE(values, nullptr);
  ASSERT_NE(context, nullptr);
  const int heads = traced.config.heads;
  const nn::AttentionConfig attention = traced.config.block().attention(causal);
  const auto head_width = static_cast<std::size_t>(attention.head_width),
             width = static_cast<std::size_t>(attention.query_width()),
             value_width = static_cast<std::size_t>(attention.key_width()),
             group = static_cast<std::size_t>(heads / attention.kv_heads);
  std::size_t first_query = 0, first_key = 0;
  for (std::size_t b = 0; b < weights->lengths.size(); ++b) {
    const auto queries = static_cast<std::size_t>(weights->lengths[b]),
               keys = static_cast<std::size_t>(weights->keys[b]);
    for (std::size_t h = 0; h < static_cast<std::size_t>(heads); ++h) {
      const float* block = weights->values.data() + weights->begin[b] + h * queries * keys;
      for (std::size_t i = 0; i < queries; ++i) {
        double sum = 0;
        std::vector<double> mixed(head_width, 0);
        for (std::size_t j = 0; j < keys; ++j) {
          const double weight = block[i * keys + j];
          if (causal && j > i) {
            EXPECT_EQ(weight, 0);
          }
          sum += weight;
          for (std::size_t d = 0; d < head_width; ++d) {
            mixed[d] +=
                weight * values->values[(first_key + j) * value_width + h / group * head_width + d];
          }
        }
        EXPECT_NEAR(sum, 1, 1e-5);
        for (std::size_t d = 0; d < head_width; ++d) {
          EXPECT_NEAR(mixed[d], context->values[(first_query + i) * width + h * head_width + d],
                      1e-5);
        }
      }
    }
    first_query += queries;
    first_key += keys;
  }
}

TEST(Trace, WeightsTimesValuesAreTheFusedOutputInEveryLayerAndHead) {
  CpuContext context({.threads = 2});
  for (const auto& [name, config] : configs_of_all_positions()) {
    SCOPED_TRACE(name);
    Traced traced{.trace = {}, .config = config};
    const auto model = make_transformer(context, traced.config);
    const PairBatch batch = make_pair_batch(context, sentences_of({70, 1, 9}, 37, 1),
                                            sentences_of({65, 0, 12}, 37, 2), {37, 37});
    const std::vector<float> before = logits_of(*model, batch);
    context.set_trace(&traced.trace);
    const std::vector<float> after = logits_of(*model, batch);
    context.set_trace(nullptr);
    EXPECT_TRUE(same_bits(before, after)) << "looking must not change what is seen";
    for (int layer = 0; layer < 2; ++layer) {
      check_attention(traced, "encoder", layer, "self_attention", false);
      check_attention(traced, "decoder", layer, "self_attention", true);
      check_attention(traced, "decoder", layer, "cross_attention", false);
      EXPECT_NE(traced.trace.find(Tap::layer_output, "encoder", layer), nullptr);
      EXPECT_NE(traced.trace.find(Tap::feed_forward, "decoder", layer), nullptr);
    }
    const TapRecord* logits = traced.trace.find(Tap::logits, "decoder", -1);
    ASSERT_NE(logits, nullptr);
    EXPECT_TRUE(same_bits(logits->values, after));
  }
}

TEST(Trace, PreNormLayersShowTheSettledStream) {
  // The last layer's output, normalised, is the stack's output.
  CpuContext context({.threads = 1});
  TransformerConfig config = small_config();
  config.norm_placement = nn::NormPlacement::pre;
  const auto model = make_transformer(context, config);
  Trace trace;
  context.set_trace(&trace);
  model->encode(make_token_batch(context, sentences_of({4, 6}, 37, 1), 37));
  context.set_trace(nullptr);
  const TapRecord *layer = trace.find(Tap::layer_output, "encoder", 1),
                  *stack = trace.find(Tap::stack_output, "encoder", -1);
  ASSERT_NE(layer, nullptr);
  ASSERT_NE(stack, nullptr);
  for (std::size_t r = 0; r < 10; ++r) {
    double mean = 0, squares = 0;
    for (std::size_t c = 0; c < 40; ++c) mean += layer->values[r * 40 + c] / 40;
    for (std::size_t c = 0; c < 40; ++c)
      squares += std::pow(layer->values[r * 40 + c] - mean, 2) / 40;
    for (std::size_t c = 0; c < 40; ++c) {
      EXPECT_NEAR((layer->values[r * 40 + c] - mean) / std::sqrt(squares + 1e-5),
                  stack->values[r * 40 + c], 1e-5);
    }
  }
}

}  // namespace
}  // namespace nunchi::testing
