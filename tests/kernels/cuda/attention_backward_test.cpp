#include "nunchi/kernels/attention.h"

#include <numeric>

#include "tests/kernels/cuda/attention_job.h"

namespace nunchi::testing {
namespace {

// A score's gradient is a difference of rounded numbers.
constexpr Tolerance kTolerance{.f32 = 1e-5, .bf16 = 1.5e-2};

TEST(CudaAttentionBackward, MatchesTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const AttentionCase& c : attention_cases()) {
    SCOPED_TRACE(describe(c));
    expect_like_cpu(backward_job(c), kTolerance);
  }
}

TEST(CudaAttentionBackward, LongSentencesMatchTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const AttentionCase& c : long_attention_cases()) {
    SCOPED_TRACE(describe(c));
    expect_like_cpu(backward_job(c), kTolerance);
  }
}

TEST(CudaAttentionBackward, SentencesOf1000TokensMatchTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t width : {32, 64, 128}) {
    const AttentionCase c{.queries = {1000, 7},
                          .heads = 2,
                          .kv_heads = 1,
                          .head_width = width,
                          .causal = true,
                          .dropout = 0.1f};
    SCOPED_TRACE(describe(c));
    expect_like_cpu(backward_job(c), kTolerance);
  }
}

TEST(CudaAttentionBackward, ASentenceOf16384TokensMatchesTheCpu) {
  SKIP_WITHOUT_GPU();
  expect_like_cpu(
      backward_job(
          {.queries = {16384}, .heads = 1, .kv_heads = 1, .head_width = 64, .causal = true}),
      {.f32 = 2e-5, .bf16 = 2e-2});
}

TEST(CudaAttentionBackward, RepeatedRunsGiveTheSameBits) {
  SKIP_WITHOUT_GPU();
  CudaContext context;
  const Job job = backward_job(
      {.kv_heads = 2, .causal = true, .bias = AttentionCase::Bias::buckets, .dropout = 0.1f});
  const std::vector<Output> first = job(context, DType::bf16), second = job(context, DType::bf16);
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_TRUE(same_bits(first[i].values, second[i].values)) << first[i].name;
  }
}

// The other sentences of a batch affect the assignment of work, not the results.
TEST(CudaAttentionBackward, SentenceBitsDoNotDependOnTheBatch) {
  SKIP_WITHOUT_GPU();
  CudaContext context;
  context.set_random_key({.seed = 5, .step = 9});
  const auto first_rows = [&](std::vector<std::int32_t> lengths, std::int64_t width,
                              float dropout) {
    std::vector<std::int32_t> indices(lengths.size());
    std::iota(indices.begin(), indices.end(), 3);
    const std::int64_t rows = lengths[0];
    std::vector<Output> found = backward_job({.queries = lengths,
                                              .head_width = width,
                                              .causal = true,
                                              .dropout = dropout,
                                              .indices = indices})(context, DType::bf16);
    for (Output& each : found) {
      each.values.resize(static_cast<std::size_t>(rows * 4 * width));
    }
    return found;
  };
  const auto expect_same_alone = [&](std::int32_t length, std::int64_t width, float dropout) {
    const std::vector<Output> alone = first_rows({length}, width, dropout);
    for (const std::vector<std::int32_t>& others :
         {std::vector<std::int32_t>{16}, {20, 3}, {64}, {3, 65, 7}, {300}}) {
      std::vector<std::int32_t> lengths = {length};
      lengths.insert(lengths.end(), others.begin(), others.end());
      const std::vector<Output> in_batch = first_rows(lengths, width, dropout);
      for (std::size_t i = 0; i < alone.size(); ++i) {
        EXPECT_TRUE(same_bits(alone[i].values, in_batch[i].values))
            << alone[i].name << " of " << length << " with " << others[0] << ", width " << width
            << ", dropout " << dropout;
      }
    }
  };
  for (const std::int64_t width : {32, 64, 128}) {
    for (const std::int32_t length : {5, 16, 20, 32, 40, 64, 65, 150, 255}) {
      expect_same_alone(length, width, 0.1f);
      expect_same_alone(length, width, 0);
    }
  }
}

// Two operations share keys and values, so that the second accumulates.
TEST(CudaAttentionBackward, Accumulates) {
  SKIP_WITHOUT_GPU();
  std::vector<AttentionCase> cases;
  for (const std::int64_t width : {16, 32, 64, 128}) {
    cases.push_back({.keys = {20, 3, 65, 31, 12}, .kv_heads = 2, .head_width = width});
    cases.push_back({.queries = edge_lengths(), .keys = other_edge_lengths(), .head_width = width});
    cases.push_back({.queries = {7, 32, 18}, .keys = {32, 1, 20}, .head_width = width});
  }
  for (const AttentionCase& c : cases) {
    SCOPED_TRACE(describe(c));
    expect_like_cpu(
        [c](ContextBase& context, DType dtype) {
          const AttentionTensors x(context, dtype, c);
          const ModeScope scope(context, Mode::training);
          Tape tape(context);
          const Variable once = attention(x.q, x.k, x.v, x.queries, x.keys, x.options);
          const Variable twice = attention(once, x.k, x.v, x.queries, x.keys, x.options);
          tape.backward(twice, input(context, dtype, once.value().shape(), 3));
          return std::vector{output("d_q", x.matrices[0].gradient()),
                             output("d_kv", x.matrices[1].gradient())};
        },
        {.f32 = 1e-5, .bf16 = 2e-2});
  }
}

// Keys in another order than their sentences, with unused rows between them; overwriting and
// accumulating.
TEST(CudaAttentionBackward, KeysMayBeInAnyOrderWithGaps) {
  SKIP_WITHOUT_GPU();
  for (const bool accumulate : {false, true}) {
    for (const std::int64_t width : {16, 64}) {
      expect_like_cpu(
          [=](ContextBase& context, DType dtype) {
            const Ragged batch = make_ragged(context, std::vector<std::int32_t>{33, 1, 40, 2});
            const std::vector<std::int32_t> key_begins = {80, 72, 9, 2}, lengths = {20, 7, 60, 0},
                                            real_keys = {104};
            const Tensor begin = from_host(context, key_begins, {4}),
                         length = from_host(context, lengths, {4}),
                         count = from_host(context, real_keys, {1});
            const std::int64_t rows = batch.capacity, keys = 112, wide = 2 * width;
            const Tensor q = input(context, dtype, {rows, wide}, 1, 2),
                         k = input(context, dtype, {keys, wide}, 2, 2),
                         v = input(context, dtype, {keys, wide}, 3, 2),
                         out = unwritten_tensor(context, dtype, {rows, wide}),
                         d_out = input(context, dtype, {rows, wide}, 4),
                         d_q = input(context, dtype, {rows, wide}, 5),
                         d_k = input(context, dtype, {keys, wide}, 6),
                         d_v = input(context, dtype, {keys, wide}, 7),
                         log_sum = zeros(context, accumulator_type(dtype), {2, rows});
            dispatch(q, [&]<class T>(auto& ctx) {
              const kernels::AttentionInputs<T> in{
                  .sentences = 4,
                  .heads = 2,
                  .kv_heads = 2,
                  .head_width = width,
                  .max_queries = 40,
                  .max_keys = 60,
                  .q = q.data<T>(),
                  .k = k.data<T>(),
                  .v = v.data<T>(),
                  .q_stride = wide,
                  .k_stride = wide,
                  .v_stride = wide,
                  .q_offsets = batch.offsets.data<std::int32_t>(),
                  .k_begin = begin.data<std::int32_t>(),
                  .k_length = length.data<std::int32_t>(),
                  .sentence = batch.sentence_index.data<std::int32_t>(),
                  .scale = 0.2};
              kernels::run(ctx, kernels::Attention<T>{.in = in,
                                                      .rows = rows_of(batch),
                                                      .out = out.data<T>(),
                                                      .out_stride = wide,
                                                      .log_sum = log_sum.data<Accumulator<T>>()});
              kernels::run(ctx,
                           kernels::AttentionBackward<T>{
                               .in = in,
                               .rows = rows_of(batch),
                               .key_rows = {.capacity = keys, .count = count.data<std::int32_t>()},
                               .out = out.data<T>(),
                               .d_out = d_out.data<T>(),
                               .out_stride = wide,
                               .d_out_stride = wide,
                               .log_sum = log_sum.data<Accumulator<T>>(),
                               .d_q = d_q.data<T>(),
                               .d_k = d_k.data<T>(),
                               .d_v = d_v.data<T>(),
                               .d_q_stride = wide,
                               .d_k_stride = wide,
                               .d_v_stride = wide,
                               .accumulate_q = accumulate,
                               .accumulate_k = accumulate,
                               .accumulate_v = accumulate});
            });
            return std::vector{output("out", out), output("d_q", d_q), output("d_k", d_k),
                               output("d_v", d_v)};
          },
          kTolerance);
    }
  }
}

}  // namespace
}  // namespace nunchi::testing
