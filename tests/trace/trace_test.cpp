// Traced values are the computed values. tests/models/every_model_test.cpp checks attention
// weights.
#include "nunchi/trace/trace.h"

#include "nunchi/autograd/tape.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

TEST(Trace, PreNormLayerOutputIncludesTheResidualSum) {
  // The last layer's output, normalised, is the stack's output.
  CpuContext context({.threads = 1});
  TransformerConfig config = small_config();
  config.norm_placement = nn::NormPlacement::pre;
  const auto model = make_small<Transformer>(context, config);
  Trace trace;
  {
    const TraceScope scope(context, trace);
    model->encode(make_token_batch(context, sentences_of({4, 6}, 37, 1), 37));
  }
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

TEST(Trace, AScopeRestoresThePreviousTrace) {
  CpuContext context({.threads = 1});
  Trace outer_trace, inner_trace;
  {
    const TraceScope outer(context, outer_trace);
    EXPECT_EQ(context.trace(), &outer_trace);
    {
      const TraceScope inner(context, inner_trace);
      EXPECT_EQ(context.trace(), &inner_trace);
    }
    EXPECT_EQ(context.trace(), &outer_trace);
  }
  EXPECT_EQ(context.trace(), nullptr);
}

TEST(Trace, AnExceptionDetachesTheTrace) {
  CpuContext context({.threads = 1});
  Trace trace;
  try {
    const TraceScope scope(context, trace);
    throw Error("the model failed.");
  } catch (const Error&) {
  }
  EXPECT_EQ(context.trace(), nullptr);
}

TEST(Trace, NothingIsWrittenAfterItsScope) {
  CpuContext context({.threads = 1});
  const auto model = make_small<Transformer>(context, small_config());
  Trace trace;
  { const TraceScope scope(context, trace); }
  model->encode(make_token_batch(context, sentences_of({4, 6}, 37, 1), 37));
  EXPECT_TRUE(trace.records().empty());
}

}  // namespace
}  // namespace nunchi::testing
