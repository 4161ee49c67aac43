// Additive attention keeps its weights only if a backward pass or a trace needs them.
#include "nunchi/ops/additive_attention.h"

#include <gtest/gtest.h>

#include "nunchi/autograd/tape.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/trace/trace.h"
#include "tests/support.h"

namespace nunchi::testing {
namespace {

TEST(AdditiveAttention, KeepsWeightsForATapeOrATrace) {
  CpuContext context({.threads = 1});
  const std::vector<std::int32_t> query_lengths = {3, 5}, key_lengths = {4, 2};
  const Ragged queries = make_ragged(context, query_lengths),
               keys = make_ragged(context, key_lengths);
  const auto make_input = [&](const Shape& shape, std::uint32_t seed) {
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>((i * 7 + seed * 3) % 11) / 11 - 0.5f;
    }
    return Variable(from_host(context, values, shape), true);
  };
  const AdditiveHeads heads{.q = make_input({queries.capacity, 6}, 1),
                            .k = make_input({keys.capacity, 6}, 2),
                            .v = make_input({keys.capacity, 8}, 3),
                            .score_vector = make_input({6}, 4)};
  const AdditiveResult unrecorded = additive_attention(heads, queries, keys);
  EXPECT_FALSE(unrecorded.weights.weights.defined());
  AdditiveResult recorded, traced;
  {
    const Tape tape(context);
    recorded = additive_attention(heads, queries, keys);
  }
  Trace trace;
  {
    const TraceScope scope(context, trace);
    traced = additive_attention(heads, queries, keys);
  }
  for (const AdditiveResult& kept : {recorded, traced}) {
    EXPECT_EQ(kept.weights.weights.elements(), 3 * 4 + 5 * 2);
    EXPECT_EQ(to_host<float>(kept.out.value()), to_host<float>(unrecorded.out.value()));
  }
}

}  // namespace
}  // namespace nunchi::testing
