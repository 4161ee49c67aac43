#include "nunchi/kernels/additive_attention.h"

#include <numeric>

#include "tests/reference/additive_attention.h"
#include "tests/reference/versions.h"

namespace nunchi::testing {
namespace {

using kernels::AdditiveAttention;

// Queries and keys of several sentences, one of them without keys.
template <class T>
struct Problem {
  explicit Problem(std::int64_t width, std::int64_t value_width)
      : width(width), value_width(value_width) {
    std::int64_t offset = 0;
    for (std::size_t b = 0; b < queries.sentence_index.size(); ++b) {
      k_length.push_back(keys.offsets[b + 1] - keys.offsets[b]);
      weight_offsets.push_back(offset);
      offset += (queries.offsets[b + 1] - queries.offsets[b]) * k_length[b];
    }
    weights = unwritten<T>(offset);
  }

  AdditiveAttention<T> forward() {
    return {.in = {.sentences = queries.sentence_count(),
                   .width = width,
                   .value_width = value_width,
                   .max_queries = queries.longest,
                   .max_keys = keys.longest,
                   .query_key_pairs = std::ssize(weights),
                   .q = q.data(),
                   .k = k.data(),
                   .v = v.data(),
                   .score_vector = score_vector.data(),
                   .q_stride = width + 2,
                   .k_stride = width + 1,
                   .v_stride = value_width + 3,
                   .q_offsets = queries.offsets.data(),
                   .k_begin = keys.offsets.data(),
                   .k_length = k_length.data(),
                   .weight_offsets = weight_offsets.data()},
            .rows = queries.rows(),
            .out = out.data(),
            .out_stride = value_width,
            .weights = weights.data()};
  }

  const Batch queries{{3, 1, 40, 2, 5}, 3}, keys{{7, 33, 1, 0, 18}, 5};
  std::int64_t width, value_width;
  std::vector<T> q = random_values<T>(queries.capacity * (width + 2), 1, 2),
                 k = random_values<T>(keys.capacity * (width + 1), 2, 2),
                 v = random_values<T>(keys.capacity * (value_width + 3), 3),
                 score_vector = random_values<T>(width, 4, 2), weights;
  std::vector<T> out = unwritten<T>(queries.capacity * value_width);
  std::vector<std::int32_t> k_length;
  std::vector<std::int64_t> weight_offsets;
};

template <class T>
void expect_like_reference(CpuContext& ctx, std::int64_t width, std::int64_t value_width) {
  Problem<T> x(width, value_width);
  const AdditiveAttention<T> p = x.forward();
  kernels::run(ctx, p);
  for (std::size_t b = 0; b < x.weight_offsets.size(); ++b) {
    const std::int64_t key_count = x.k_length[b], first = x.queries.offsets[b];
    for (std::int64_t row = first; row < x.queries.offsets[b + 1]; ++row) {
      const auto expected = reference::additive_attention(p.in, row, x.keys.offsets[b], key_count);
      expect_close("weights",
                   subrange(x.weights, x.weight_offsets[b] + (row - first) * key_count, key_count),
                   expected.weights);
      expect_close("out", subrange(x.out, row * value_width, value_width), expected.out);
      if (key_count == 0) continue;
      const std::vector<T> row_weights =
          subrange(x.weights, x.weight_offsets[b] + (row - first) * key_count, key_count);
      EXPECT_NEAR(std::accumulate(row_weights.begin(), row_weights.end(), 0.0), 1, 1e-6);
    }
  }
  expect_zero_from("out", x.out, x.queries.count * value_width);
}

TEST(AdditiveAttention, MatchesTheReference) {
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    for (const std::int64_t width : kWidths) expect_like_reference<T>(ctx, width, width / 2 + 1);
  });
}

TEST(AdditiveAttention, NumberOfThreadsDoesNotChangeBits) {
  expect_same_bits_for_any_threads([&]<class T>(CpuContext& ctx) {
    Problem<T> x(70, 33);
    kernels::run(ctx, x.forward());
    return x.out;
  });
}

// A decode step: every row is its own sentence, and several rows read the same keys.
TEST(AdditiveAttention, RowsOfADecodeStepShareKeys) {
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    Problem<T> x(20, 24);
    AdditiveAttention<T> p = x.forward();
    const std::vector<std::int32_t> k_begin = {0, 0, 7, 40, 7}, k_length = {7, 7, 33, 1, 33};
    p.in.sentences = 5;
    p.in.q_offsets = nullptr;
    p.in.weight_offsets = nullptr;
    p.in.k_begin = k_begin.data();
    p.in.k_length = k_length.data();
    p.weights = nullptr;
    kernels::run(ctx, p);
    for (std::size_t row = 0; row < 5; ++row) {
      const auto expected = reference::additive_attention(p.in, static_cast<std::int64_t>(row),
                                                          k_begin[row], k_length[row]);
      expect_close("out", subrange(x.out, static_cast<std::int64_t>(row) * 24, 24), expected.out);
    }
  });
}

}  // namespace
}  // namespace nunchi::testing
