#include "nunchi/kernels/attention.h"

#include "tests/kernels/cuda/attention_job.h"

namespace nunchi::testing {
namespace {

constexpr Tolerance kTolerance{.f32 = 1e-5, .bf16 = 1e-2};

TEST(CudaAttention, MatchesTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const AttentionCase& c : attention_cases()) {
    SCOPED_TRACE(describe(c));
    expect_like_cpu(forward_job(c), kTolerance);
  }
}

TEST(CudaAttention, LongSentencesMatchTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const AttentionCase& c : long_attention_cases()) {
    SCOPED_TRACE(describe(c));
    expect_like_cpu(forward_job(c), kTolerance);
  }
}

TEST(CudaAttention, SentencesOf1000TokensMatchTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t width : {32, 64, 128}) {
    for (const bool causal : {false, true}) {
      const AttentionCase c{.queries = {1000, 7},
                            .heads = 1,
                            .kv_heads = 1,
                            .head_width = width,
                            .causal = causal,
                            .dropout = 0.1f};
      SCOPED_TRACE(describe(c));
      expect_like_cpu(forward_job(c), kTolerance);
    }
  }
}

TEST(CudaAttention, ASentenceOf16384TokensMatchesTheCpu) {
  SKIP_WITHOUT_GPU();
  expect_like_cpu(
      forward_job(
          {.queries = {16384}, .heads = 1, .kv_heads = 1, .head_width = 64, .causal = true}),
      kTolerance);
}

TEST(CudaAttention, WritesTheLogSumExp) {
  SKIP_WITHOUT_GPU();
  expect_like_cpu(
      [](ContextBase& context, DType dtype) {
        const Ragged batch = make_ragged(context, std::vector<std::int32_t>{33, 1, 0, 50, 3});
        const Tensor qkv = input(context, dtype, {batch.capacity, 3 * 128}, 1, 3);
        const Tensor out = unwritten_tensor(context, dtype, {batch.capacity, 128});
        const Tensor log_sum = zeros(context, accumulator_type(dtype), {2, batch.capacity});
        dispatch(qkv, [&]<class T>(auto& ctx) {
          kernels::run(ctx, kernels::Attention<T>{
                                .in = {.sentences = batch.sentences,
                                       .heads = 2,
                                       .kv_heads = 2,
                                       .head_width = 64,
                                       .max_queries = batch.max_length,
                                       .max_keys = batch.max_length,
                                       .q = qkv.data<T>(),
                                       .k = qkv.data<T>() + 128,
                                       .v = qkv.data<T>() + 256,
                                       .q_stride = 384,
                                       .k_stride = 384,
                                       .v_stride = 384,
                                       .q_offsets = batch.offsets.data<std::int32_t>(),
                                       .k_begin = batch.begin.data<std::int32_t>(),
                                       .k_length = batch.length.data<std::int32_t>(),
                                       .sentence = batch.sentence_index.data<std::int32_t>(),
                                       .causal = true,
                                       .scale = 0.125},
                                .rows = rows_of(batch),
                                .out = out.data<T>(),
                                .out_stride = 128,
                                .log_sum = log_sum.data<Accumulator<T>>()});
        });
        return std::vector{output("out", out), output("log_sum", log_sum)};
      },
      kTolerance);
}

TEST(CudaAttentionWeights, MatchTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const AttentionCase& c : attention_cases()) {
    if (c.dropout > 0) continue;
    SCOPED_TRACE(describe(c));
    expect_like_cpu(
        [c](ContextBase& context, DType dtype) {
          const AttentionTensors x(context, dtype, c);
          return std::vector{output(
              "weights",
              attention_weights(x.q.value(), x.k.value(), x.queries, x.keys, x.options).weights)};
        },
        {.f32 = 1e-5, .bf16 = 1e-5});
  }
}

}  // namespace
}  // namespace nunchi::testing
