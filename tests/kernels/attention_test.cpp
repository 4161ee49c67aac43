#include "nunchi/kernels/attention.h"

#include "tests/reference/attention_problem.h"

namespace nunchi::testing {
namespace {

using kernels::Attention;
using kernels::AttentionWeights;

// Large scores lose digits in the softmax.
template <class T>
double tolerance_of(const AttentionSetup& setup) {
  return kTolerance<T> * std::max(1.0, setup.spread * setup.spread / 2);
}

template <class T>
void expect_forward(const AttentionProblem<T>& x, const reference::Attention& expected) {
  const double tolerance = tolerance_of<T>(x.setup);
  const std::int64_t rows = x.batch.count, capacity = x.batch.capacity;
  expect_close("out", x.dense_out(), expected.out, tolerance);
  expect_zero_from("out", x.dense_out(), rows * x.out.width);
  for (int h = 0; h < x.setup.heads; ++h) {
    expect_close("log_sum", subrange(x.log_sum, h * capacity, rows),
                 subrange(expected.log_sum, h * rows, rows), tolerance);
  }
  for (std::int64_t r = 0; r < capacity; ++r) {
    const auto row = subrange(x.output, r * x.out.stride, x.out.stride);
    ASSERT_TRUE(std::isnan(row[0]) && std::isnan(row[1]) && std::isnan(row.back()))
        << "row " << r << " wrote outside its slice";
  }
}

template <class T>
void check_forward(const AttentionSetup& setup, const std::vector<Isa>& isas) {
  AttentionProblem<T> x(setup);
  const reference::Attention expected = reference::attention(x.inputs());
  for (const Isa isa : isas) {
    SCOPED_TRACE(name_of(isa));
    CpuContext ctx({.threads = 2, .isa = isa});
    std::fill(x.output.begin(), x.output.end(), static_cast<T>(NAN));
    kernels::run(ctx, x.forward());
    expect_forward(x, expected);
  }
}

TEST(RelativeBucket, MatchesTheReference) {
  for (const bool bidirectional : {false, true}) {
    for (const auto& [buckets, max_distance] :
         {std::pair{32, 128}, {12, 40}, {64, 1000}, {8, 20}}) {
      for (std::int64_t relative = -1100; relative <= 1100; ++relative) {
        ASSERT_EQ(kernels::relative_bucket(relative, buckets, max_distance, bidirectional),
                  reference::relative_bucket(relative, buckets, max_distance, bidirectional))
            << relative << " of " << buckets << " up to " << max_distance;
      }
    }
  }
}

TEST(RelativeBucket, BucketStartsMatchTheLogarithm) {
  for (const bool bidirectional : {false, true}) {
    for (const auto& [buckets, max_distance] :
         {std::pair{32, 128}, {12, 40}, {64, 1000}, {8, 20}, {4, 3}, {2000, 65'536}}) {
      const std::vector<std::int32_t> starts =
          kernels::bucket_starts(buckets, max_distance, bidirectional);
      ASSERT_EQ(static_cast<int>(starts.size()), bidirectional ? buckets / 2 : buckets);
      for (std::int32_t distance = 0; distance <= 100'000; ++distance) {
        const auto next_start = std::upper_bound(starts.begin(), starts.end(), distance);
        ASSERT_EQ(next_start - starts.begin() - 1,
                  kernels::relative_bucket(-distance, buckets, max_distance, bidirectional))
            << distance << " of " << buckets << " up to " << max_distance;
      }
    }
  }
}

TEST(ClippedBucket, EachDistanceHasItsOwnBucket) {
  const auto rows = [](bool bidirectional) {
    std::vector<int> found;
    for (int relative = -5; relative <= 5; ++relative) {
      found.push_back(kernels::clipped_bucket(relative, 3, bidirectional));
    }
    return found;
  };
  EXPECT_EQ(rows(false), (std::vector<int>{3, 3, 3, 2, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(rows(true), (std::vector<int>{3, 3, 3, 2, 1, 0, 4, 5, 6, 6, 6}));
  EXPECT_EQ(kernels::clipped_buckets(3, false), 4);
  EXPECT_EQ(kernels::clipped_buckets(3, true), 7);
}

TEST(RelativeBucket, MatchesT5) {
  const auto bidirectional_bucket = [](int relative) {
    return kernels::relative_bucket(relative, 32, 128, true);
  };
  const auto causal_bucket = [](int relative) {
    return kernels::relative_bucket(relative, 32, 128, false);
  };
  EXPECT_EQ(bidirectional_bucket(0), 0);
  EXPECT_EQ(bidirectional_bucket(-1), 1);
  EXPECT_EQ(bidirectional_bucket(1), 17);
  EXPECT_EQ(bidirectional_bucket(-8), 8);
  EXPECT_EQ(bidirectional_bucket(-16), 10);
  EXPECT_EQ(bidirectional_bucket(64), 16 + 14);
  EXPECT_EQ(bidirectional_bucket(-127), 15);
  EXPECT_EQ(bidirectional_bucket(5000), 31);
  EXPECT_EQ(causal_bucket(5), 0);
  EXPECT_EQ(causal_bucket(-15), 15);
  EXPECT_EQ(causal_bucket(-16), 16);
  EXPECT_EQ(causal_bucket(-5000), 31);
}

TEST(Attention, MatchesTheReference) {
  for (const AttentionSetup& setup : attention_setups()) {
    for_both_types(setup,
                   []<class T>(const AttentionSetup& s) { check_forward<T>(s, all_isas()); });
  }
}

TEST(Attention, SentencesOf1000TokensMatchTheReference) {
  for (const bool causal : {false, true}) {
    check_forward<float>(
        {.queries = {1000}, .heads = 1, .kv_heads = 1, .width = 64, .causal = causal},
        {detected_isa()});
  }
}

TEST(Attention, AcceptsDenseMatricesWithoutLogSum) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    AttentionProblem<T> x({.heads = 2, .kv_heads = 2});
    const reference::Attention expected = reference::attention(x.inputs());
    const std::int64_t width = x.q.width;
    const std::vector<T> q = dense(x.queries, x.q, x.batch.capacity);
    const std::vector<T> k = dense(x.keys, x.k, x.key_rows), v = dense(x.keys, x.v, x.key_rows);
    std::vector<T> out = unwritten<T>(x.batch.capacity * width);
    Attention<T> p = x.forward();
    p.in.q = q.data();
    p.in.k = k.data();
    p.in.v = v.data();
    p.in.q_stride = p.in.k_stride = p.in.v_stride = width;
    p.out = out.data();
    p.out_stride = width;
    p.log_sum = nullptr;
    kernels::run(ctx, p);
    expect_close("out", out, expected.out);
    expect_zero_from("out", out, x.batch.count * width);
  });
}

TEST(Attention, SentenceWithoutKeysGivesZeros) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    AttentionProblem<T> x({.queries = {3, 33}, .keys = {5, 0}, .dropout = 0.1f});
    kernels::run(ctx, x.forward());
    expect_zero_from("out", x.dense_out(), 3 * x.q.width);
  });
}

// The results of queries [first, first + count) of the sentence, for bitwise comparison.
template <class T>
std::vector<T> rows_of_out(const AttentionProblem<T>& x, std::int64_t first, std::int64_t count) {
  return subrange(x.dense_out(), first * x.out.width, count * x.out.width);
}

TEST(Attention, PropagatesNaN) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const bool causal : {false, true}) {
      for (const std::int32_t queries : {1, 2, 33, 127}) {
        AttentionProblem<T> x({.queries = {queries}, .causal = causal});
        x.keys[x.k.column] = static_cast<T>(NAN);
        kernels::run(ctx, x.forward());
        for (std::int64_t i = 0; i < queries; ++i) {
          EXPECT_TRUE(std::isnan(x.dense_out()[i * x.out.width]))
              << "query " << i << " of " << queries;
        }
      }
    }
  });
}

TEST(Attention, FutureKeyChangesNoEarlierBit) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const std::int32_t changed : {1, 31, 63, 64, 100, 126}) {
      AttentionProblem<T> before({.queries = {127}, .causal = true}), after(before.setup);
      for (std::int64_t c = 0; c < after.k.stride; ++c)
        after.keys[changed * after.k.stride + c] += T(50);
      kernels::run(ctx, before.forward());
      kernels::run(ctx, after.forward());
      EXPECT_TRUE(same_bits(rows_of_out(before, 0, changed), rows_of_out(after, 0, changed)));
      EXPECT_FALSE(same_bits(rows_of_out(before, changed, 1), rows_of_out(after, changed, 1)));
    }
  });
}

TEST(Attention, LastQueriesAloneHaveTheSameBits) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const Bias bias : {Bias::none, Bias::slopes, Bias::buckets, Bias::clipped}) {
      AttentionProblem<T> sentence({.queries = {127}, .keys = {127}, .causal = true, .bias = bias});
      kernels::run(ctx, sentence.forward());
      for (const std::int32_t count : {1, 2, 50}) {
        AttentionProblem<T> last_queries(
            {.queries = {count}, .keys = {127}, .causal = true, .bias = bias});
        std::copy(sentence.queries.begin() + (127 - count) * sentence.q.stride,
                  sentence.queries.begin() + 127 * sentence.q.stride, last_queries.queries.begin());
        kernels::run(ctx, last_queries.forward());
        EXPECT_TRUE(same_bits(rows_of_out(sentence, 127 - count, count),
                              rows_of_out(last_queries, 0, count)));
      }
    }
  });
}

TEST(Attention, SentenceHasTheSameBitsAloneAndInABatch) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    AttentionProblem<T> batch(
        {.queries = {33, 127, 5}, .causal = true, .dropout = 0.1f, .indices = {3, 8, 1}});
    AttentionProblem<T> alone({.queries = {127}, .causal = true, .dropout = 0.1f, .indices = {8}});
    std::copy(batch.queries.begin() + 33 * batch.q.stride,
              batch.queries.begin() + 160 * batch.q.stride, alone.queries.begin());
    alone.keys = alone.queries;
    kernels::run(ctx, batch.forward());
    kernels::run(ctx, alone.forward());
    EXPECT_TRUE(same_bits(rows_of_out(batch, 33, 127), rows_of_out(alone, 0, 127)));
  });
}

TEST(Attention, NumberOfThreadsDoesNotChangeBits) {
  expect_same_bits_for_any_threads([]<class T>(CpuContext& ctx) {
    AttentionProblem<T> x(
        {.queries = {33, 450, 127, 1}, .kv_heads = 2, .causal = true, .dropout = 0.1f});
    kernels::run(ctx, x.forward());
    std::vector<T> results = rows_of_out(x, 0, x.batch.count);
    results.insert(results.end(), x.log_sum.begin(), x.log_sum.end());
    return results;
  });
}

// The offset of each sentence's weights [H, queries, keys], and their total number.
template <class T>
std::vector<std::int64_t> weight_offsets(const AttentionProblem<T>& x) {
  std::vector<std::int64_t> offsets{0};
  for (std::size_t b = 0; b < x.length.size(); ++b) {
    offsets.push_back(offsets.back() +
                      std::int64_t{x.setup.heads} * x.setup.queries[b] * x.length[b]);
  }
  return offsets;
}

template <class T>
void check_weights(const AttentionSetup& setup) {
  AttentionProblem<T> x(setup);
  const std::vector<std::int64_t> begin = weight_offsets(x);
  std::vector<double> expected;
  for (std::size_t b = 0; b < x.length.size(); ++b) {
    for (int h = 0; h < setup.heads; ++h) {
      const reference::Scores s = reference::scores_of(x.inputs(), static_cast<std::int64_t>(b), h);
      expected.insert(expected.end(), s.weights.begin(), s.weights.end());
    }
  }
  for (const Isa isa : all_isas()) {
    SCOPED_TRACE(name_of(isa));
    CpuContext ctx({.threads = 2, .isa = isa});
    std::vector<T> weights = unwritten<T>(begin.back());
    kernels::run(ctx, AttentionWeights<T>{
                          .in = x.inputs(), .begin = begin.data(), .weights = weights.data()});
    expect_close("weights", weights, expected, tolerance_of<T>(setup));
  }
}

TEST(AttentionWeights, AreTheSoftmaxWithoutDropout) {
  for (const AttentionSetup& setup : attention_setups()) {
    for_both_types(setup, []<class T>(const AttentionSetup& s) { check_weights<T>(s); });
  }
}

TEST(AttentionWeights, SumToOneAndTimesVGiveTheOutput) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    AttentionProblem<T> x({.kv_heads = 2, .causal = true, .bias = Bias::slopes});
    const std::vector<std::int64_t> begin = weight_offsets(x);
    std::vector<T> weights = unwritten<T>(begin.back());
    kernels::run(ctx, AttentionWeights<T>{
                          .in = x.inputs(), .begin = begin.data(), .weights = weights.data()});
    kernels::run(ctx, x.forward());
    std::vector<double> out(static_cast<std::size_t>(x.batch.count * x.out.width));
    const T* weight = weights.data();
    for (std::size_t b = 0; b < x.length.size(); ++b) {
      for (int h = 0; h < x.setup.heads; ++h) {
        for (std::int64_t i = 0; i < x.setup.queries[b]; ++i) {
          double sum = 0;
          for (std::int64_t j = 0; j < x.length[b]; ++j, ++weight) {
            sum += *weight;
            const T* v = reference::value_of(x.inputs(), static_cast<std::int64_t>(b), h, j);
            for (std::int64_t d = 0; d < x.setup.width; ++d) {
              out[(x.batch.offsets[b] + i) * x.out.width + h * x.setup.width + d] += *weight * v[d];
            }
          }
          ASSERT_NEAR(sum, 1, kTolerance<T>);
        }
      }
    }
    expect_close("out", x.dense_out(), out);
  });
}

}  // namespace
}  // namespace nunchi::testing
