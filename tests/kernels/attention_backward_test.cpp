#include "nunchi/kernels/attention.h"
#include "tests/reference/attention_problem.h"

namespace nunchi::testing {
namespace {

using kernels::AttentionBackward;

// The expected gradient; with `add`, accumulated into the initial values.
template <class T>
std::vector<double> with_initial(const std::vector<double>& gradient, const std::vector<T>& initial,
                                 bool add) {
  std::vector<double> result = gradient;
  for (std::size_t i = 0; add && i < result.size(); ++i)
    result[i] += static_cast<double>(initial[i]);
  return result;
}

// Compares the rows of all sentences and expects zeros past the count. Rows between two sentences
// are not compared.
template <class T>
void expect_key_rows(const char* what, const AttentionProblem<T>& x, const std::vector<T>& actual,
                     const std::vector<double>& expected, double tolerance) {
  const std::int64_t width = x.k.width;
  for (std::size_t b = 0; b < x.length.size(); ++b) {
    const std::int64_t from = x.begin[b] * width, count = x.length[b] * width;
    expect_close(what, subrange(actual, from, count), subrange(expected, from, count), tolerance);
  }
  expect_zero_from(what, actual, x.key_count * width);
}

// Expects that the column after the slice keeps its initial value in every row.
template <class T>
void expect_gaps(const std::vector<T>& d, const std::vector<T>& initial, const Slice& slice) {
  for (std::size_t column = static_cast<std::size_t>(slice.column + slice.width); column < d.size();
       column += static_cast<std::size_t>(slice.stride)) {
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): compares bits
    ASSERT_EQ(std::memcmp(&d[column], &initial[column], sizeof(T)), 0)
        << "wrote outside its slice, at " << column;
  }
}

template <class T>
void check_backward(const AttentionSetup& setup, const std::vector<Isa>& isas,
                    bool accumulate = false) {
  AttentionProblem<T> x(setup);
  const double tolerance = kTolerance<T> * std::max(1.0, setup.spread * setup.spread / 2);
  const reference::AttentionGradients expected = reference::attention_backward(
      x.inputs(), x.key_rows, x.d_output.data() + x.out.column, x.out.stride);
  if (accumulate) {
    x.d_queries = random_values<T>(static_cast<std::int64_t>(x.d_queries.size()), 11);
    x.d_keys = random_values<T>(static_cast<std::int64_t>(x.d_keys.size()), 12);
    // Accumulated gradients are zero in rows past the count.
    std::fill(x.d_queries.begin() + x.batch.count * x.q.stride, x.d_queries.end(), T(0));
    std::fill(x.d_keys.begin() + x.key_count * x.k.stride, x.d_keys.end(), T(0));
  }
  const std::vector<T> d_queries = x.d_queries, d_keys = x.d_keys, d_table = x.d_table;
  const std::vector<T> d_q = x.d_q(), d_k = x.d_k(), d_v = x.d_v();
  for (const Isa isa : isas) {
    SCOPED_TRACE(name_of(isa));
    CpuContext ctx({.threads = 2, .isa = isa});
    x.d_queries = d_queries;
    x.d_keys = d_keys;
    x.d_table = d_table;
    kernels::run(ctx, x.forward());
    AttentionBackward<T> p = x.backward();
    p.accumulate_q = p.accumulate_k = p.accumulate_v = accumulate;
    kernels::run(ctx, p);
    expect_close("d_q", x.d_q(), with_initial(expected.d_q, d_q, accumulate), tolerance);
    expect_zero_from("d_q", x.d_q(), x.batch.count * x.q.width);
    expect_key_rows("d_k", x, x.d_k(), with_initial(expected.d_k, d_k, accumulate), tolerance);
    expect_key_rows("d_v", x, x.d_v(), with_initial(expected.d_v, d_v, accumulate), tolerance);
    expect_gaps(x.d_queries, d_queries, x.q);
    if (!x.shared) expect_gaps(x.d_keys, d_keys, x.k);
    if (p.d_table != nullptr) {
      expect_close("d_table", x.d_table, with_initial(expected.d_table, d_table, true), tolerance);
    }
  }
}

TEST(AttentionBackward, MatchesTheReference) {
  for (const AttentionSetup& setup : attention_setups()) {
    for_both_types(setup,
                   []<class T>(const AttentionSetup& s) { check_backward<T>(s, all_isas()); });
  }
}

TEST(AttentionBackward, SentencesOf1000TokensMatchTheReference) {
  for (const bool causal : {false, true}) {
    check_backward<float>(
        {.queries = {1000}, .heads = 1, .kv_heads = 1, .width = 64, .causal = causal},
        {detected_isa()});
  }
}

TEST(AttentionBackward, AccumulatesOnRequest) {
  for (const int kv_heads : {4, 2, 1}) {
    for_both_types({.kv_heads = kv_heads, .dropout = 0.1f}, []<class T>(const AttentionSetup& s) {
      check_backward<T>(s, all_isas(), true);
    });
  }
}

TEST(AttentionBackward, EachGradientHasItsOwnAccumulateFlag) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    AttentionProblem<T> written({.kv_heads = 2}), added({.kv_heads = 2});
    std::fill(added.d_queries.begin(), added.d_queries.end(), T(100));
    kernels::run(ctx, written.forward());
    kernels::run(ctx, added.forward());
    kernels::run(ctx, written.backward());
    for (int flags = 0; flags < 8; ++flags) {
      std::fill(added.d_queries.begin(), added.d_queries.end(), T(100));
      AttentionBackward<T> p = added.backward();
      p.accumulate_q = (flags & 1) != 0;
      p.accumulate_k = (flags & 2) != 0;
      p.accumulate_v = (flags & 4) != 0;
      kernels::run(ctx, p);
      EXPECT_NEAR(added.d_q()[0] - written.d_q()[0], p.accumulate_q ? 100 : 0, 1e-4);
      EXPECT_NEAR(added.d_k()[0] - written.d_k()[0], p.accumulate_k ? 100 : 0, 1e-4);
      EXPECT_NEAR(added.d_v()[0] - written.d_v()[0], p.accumulate_v ? 100 : 0, 1e-4);
    }
  });
}

TEST(AttentionBackward, SkipsTheTableGradientIfNotWanted) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    AttentionProblem<T> x({.bias = Bias::buckets_bidirectional}),
        y({.bias = Bias::buckets_bidirectional});
    kernels::run(ctx, x.forward());
    kernels::run(ctx, y.forward());
    AttentionBackward<T> p = x.backward();
    p.d_table = nullptr;
    kernels::run(ctx, p);
    kernels::run(ctx, y.backward());
    EXPECT_TRUE(same_bits(subrange(x.d_q(), 0, x.batch.count * x.q.width),
                          subrange(y.d_q(), 0, x.batch.count * x.q.width)));
  });
}

TEST(AttentionBackward, QueriesWithoutKeysHaveZeroGradient) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    AttentionProblem<T> x({.queries = {3, 33}, .keys = {5, 0}});
    kernels::run(ctx, x.forward());
    kernels::run(ctx, x.backward());
    expect_zero_from("d_q", subrange(x.d_q(), 3 * x.q.width, 33 * x.q.width), 0);
  });
}

// Everything that the backward pass writes, without the gaps.
template <class T>
std::vector<T> gradients(CpuContext& ctx, AttentionProblem<T>& x, std::int64_t first,
                         std::int64_t count) {
  kernels::run(ctx, x.forward());
  kernels::run(ctx, x.backward());
  std::vector<T> results = subrange(x.d_q(), first * x.q.width, count * x.q.width);
  for (const std::vector<T>& gradient : {x.d_k(), x.d_v()}) {
    results.insert(results.end(), gradient.begin() + first * x.k.width,
                   gradient.begin() + (first + count) * x.k.width);
  }
  return results;
}

TEST(AttentionBackward, NumberOfThreadsDoesNotChangeBits) {
  expect_same_bits_for_any_threads([]<class T>(CpuContext& ctx) {
    AttentionProblem<T> x({.queries = {33, 450, 127, 1},
                           .kv_heads = 2,
                           .causal = true,
                           .bias = Bias::buckets,
                           .dropout = 0.1f});
    std::vector<T> results = gradients(ctx, x, 0, x.batch.count);
    results.insert(results.end(), x.d_table.begin(), x.d_table.end());
    return results;
  });
}

TEST(AttentionBackward, SentenceHasTheSameBitsAloneAndInABatch) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    AttentionProblem<T> batch(
        {.queries = {33, 127, 5}, .causal = true, .dropout = 0.1f, .indices = {3, 8, 1}});
    AttentionProblem<T> alone({.queries = {127}, .causal = true, .dropout = 0.1f, .indices = {8}});
    std::copy(batch.queries.begin() + 33 * batch.q.stride,
              batch.queries.begin() + 160 * batch.q.stride, alone.queries.begin());
    alone.keys = alone.queries;
    std::copy(batch.d_output.begin() + 33 * batch.out.stride,
              batch.d_output.begin() + 160 * batch.out.stride, alone.d_output.begin());
    EXPECT_TRUE(same_bits(gradients(ctx, batch, 33, 127), gradients(ctx, alone, 0, 127)));
  });
}

}  // namespace
}  // namespace nunchi::testing
