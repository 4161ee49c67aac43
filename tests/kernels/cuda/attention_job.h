// Jobs (compare.h) that run self- or cross-attention, forward and backward.
#pragma once

#include "nunchi/autograd/tape.h"
#include "nunchi/ops/attention.h"
#include "tests/kernels/cuda/compare.h"
#include "tests/reference/score_bias.h"

namespace nunchi::testing {

struct AttentionCase {
  using Bias = testing::Bias;

  std::vector<std::int32_t> queries = {1, 31, 32, 33, 127};
  std::vector<std::int32_t> keys = {};  // empty: q, k and v are columns of one matrix
  int heads = 4, kv_heads = 4;
  std::int64_t head_width = 64;
  bool causal = false;
  Bias bias = Bias::none;
  float dropout = 0;
  std::vector<std::int32_t> indices = {};
};

inline std::string describe(const AttentionCase& c) {
  return "heads " + std::to_string(c.heads) + "/" + std::to_string(c.kv_heads) + " of " +
         std::to_string(c.head_width) + (c.keys.empty() ? "" : ", other keys") +
         (c.causal ? ", causal" : "") + ", bias " + std::to_string(static_cast<int>(c.bias)) +
         ", dropout " + std::to_string(c.dropout);
}

// The tensors of a case on one device.
struct AttentionTensors {
  AttentionTensors(ContextBase& context, DType dtype, const AttentionCase& c)
      : queries(make_ragged(context, c.queries, c.indices)),
        keys(c.keys.empty() ? queries : make_ragged(context, c.keys, c.indices)) {
    using Kind = ScoreBias::Kind;
    const std::int64_t q_width = c.heads * c.head_width, kv_width = c.kv_heads * c.head_width;
    if (c.keys.empty()) {
      matrices = {
          Variable(input(context, dtype, {queries.capacity, q_width + 2 * kv_width}, 1, 2), true)};
      q = matrices[0].columns(0, q_width);
      k = matrices[0].columns(q_width, kv_width);
      v = matrices[0].columns(q_width + kv_width, kv_width);
    } else {
      matrices = {Variable(input(context, dtype, {queries.capacity, q_width}, 1, 2), true),
                  Variable(input(context, dtype, {keys.capacity, 2 * kv_width}, 2, 2), true)};
      q = matrices[0];
      k = matrices[1].columns(0, kv_width);
      v = matrices[1].columns(kv_width, kv_width);
    }
    options = {.heads = c.heads,
               .kv_heads = c.kv_heads,
               .causal = c.causal,
               .dropout = {.probability = c.dropout, .operation_id = 21}};
    if (c.bias == AttentionCase::Bias::slopes) {
      options.bias = {.kind = Kind::slopes,
                      .slopes = random_tensor<float>(context, {c.heads}, 6, 0.5)};
    } else if (c.bias != AttentionCase::Bias::none) {
      const Shape shape{buckets_of(c.bias), c.heads};
      const Tensor numbers = input(context, dtype, shape, 4);
      Variable table(numbers, true);
      table.bind(numbers, zeros(context, DType::f32, shape));
      options.bias = {.kind = Kind::buckets,
                      .table = table,
                      .max_distance = distance_of(c.bias),
                      .bidirectional = is_bidirectional(c.bias),
                      .clipped = is_clipped(c.bias)};
    }
  }

  Ragged queries, keys;
  std::vector<Variable> matrices;  // q, k and v are columns of these
  Variable q, k, v;
  AttentionOptions options;
};

inline Job forward_job(const AttentionCase& c) {
  return [c](ContextBase& context, DType dtype) {
    const AttentionTensors x(context, dtype, c);
    const ModeScope scope(context, Mode::training);
    return std::vector{
        output("out", attention(x.q, x.k, x.v, x.queries, x.keys, x.options).value())};
  };
}

inline Job backward_job(const AttentionCase& c) {
  return [c](ContextBase& context, DType dtype) {
    const AttentionTensors x(context, dtype, c);
    const ModeScope scope(context, Mode::training);
    Tape tape(context);
    const Variable out = attention(x.q, x.k, x.v, x.queries, x.keys, x.options);
    tape.backward(out, input(context, dtype, out.value().shape(), 3));
    std::vector<Output> found = {output("out", out.value())};
    if (c.keys.empty()) {
      const std::int64_t q_width = c.heads * c.head_width, kv_width = c.kv_heads * c.head_width;
      const Tensor& d = x.matrices[0].gradient();
      found.push_back(output("d_q", d.columns(0, q_width)));
      found.push_back(output("d_k", d.columns(q_width, kv_width)));
      found.push_back(output("d_v", d.columns(q_width + kv_width, kv_width)));
    } else {
      const std::int64_t kv_width = c.kv_heads * c.head_width;
      found.push_back(output("d_q", x.matrices[0].gradient()));
      found.push_back(output("d_k", x.matrices[1].gradient().columns(0, kv_width)));
      found.push_back(output("d_v", x.matrices[1].gradient().columns(kv_width, kv_width)));
    }
    if (x.options.bias.table.defined()) {
      found.push_back(output("d_table", x.options.bias.table.gradient()));
    }
    return found;
  };
}

inline std::vector<std::int32_t> edge_lengths() { return {15, 16, 17, 47, 48, 49, 63, 64, 65}; }
// Key lengths for cross-attention: short queries with long keys and long queries with short keys.
inline std::vector<std::int32_t> other_edge_lengths() {
  return {64, 17, 65, 16, 63, 15, 49, 1, 48};
}

// Lengths, widths, masks, biases, groups of heads and dropout in several combinations.
inline std::vector<AttentionCase> attention_cases() {
  const std::vector<std::int32_t> longer = {40, 70, 130, 32, 127}, other = {20, 0, 65, 127, 12};
  std::vector<AttentionCase> cases;
  for (const std::int64_t width : {16, 20, 32, 64, 128}) {
    cases.push_back({.heads = 2, .kv_heads = 2, .head_width = width});
    cases.push_back(
        {.heads = 2, .kv_heads = 1, .head_width = width, .causal = true, .dropout = 0.1f});
  }
  for (const Bias bias : kBiases) {
    cases.push_back({.heads = 3, .kv_heads = 3, .bias = bias});
    cases.push_back(
        {.kv_heads = 2, .head_width = 32, .causal = true, .bias = bias, .dropout = 0.1f});
    cases.push_back({.keys = longer, .kv_heads = 1, .causal = true, .bias = bias});
    cases.push_back({.keys = other, .head_width = 32, .bias = bias});
  }
  cases.push_back({.kv_heads = 2, .dropout = 0.5f, .indices = {9, 4, 1000000, 0, 7}});
  cases.push_back({.keys = other, .kv_heads = 1, .head_width = 128, .dropout = 0.1f});
  cases.push_back(
      {.keys = other, .head_width = 32, .causal = true});  // queries before the first key
  // One wide head, as a recurrent decoder has.
  for (const std::int64_t width : {300, 512, 1024}) {
    cases.push_back({.keys = other, .heads = 1, .kv_heads = 1, .head_width = width});
  }
  cases.push_back({.queries = {3, 0, 33, 0}, .keys = {5, 7, 0, 0}, .heads = 2, .kv_heads = 2});
  cases.push_back({.queries = {0, 0}, .heads = 2, .kv_heads = 2});
  // More sentences than a warp finds in one search step.
  cases.push_back({.queries = std::vector<std::int32_t>(70, 3), .heads = 1, .kv_heads = 1});
  cases.push_back({.queries = {260, 5}, .heads = 1, .kv_heads = 1, .causal = true});
  for (const std::int64_t width : {32, 64}) {
    // Short and long sentences in one batch, with lengths at the edges of tiles.
    cases.push_back({.queries = edge_lengths(), .heads = 3, .kv_heads = 3, .head_width = width});
    cases.push_back(
        {.queries = edge_lengths(), .head_width = width, .causal = true, .dropout = 0.1f});
    cases.push_back({.queries = edge_lengths(),
                     .keys = other_edge_lengths(),
                     .kv_heads = 2,
                     .head_width = width,
                     .bias = Bias::slopes,
                     .dropout = 0.1f});
    cases.push_back({.queries = other_edge_lengths(),
                     .keys = edge_lengths(),
                     .head_width = width,
                     .causal = true,
                     .dropout = 0.1f});
    // Batches of short sentences only, for which a block processes one, two or four heads.
    for (const std::vector<std::int32_t>& lengths :
         {std::vector<std::int32_t>{16, 0, 1, 9}, {3, 32, 17, 12}, {33, 64, 16, 2, 48, 20}}) {
      cases.push_back({.queries = lengths,
                       .heads = 5,
                       .kv_heads = 5,
                       .head_width = width,
                       .causal = true,
                       .dropout = 0.1f});
      cases.push_back({.queries = lengths,
                       .keys = std::vector<std::int32_t>(lengths.rbegin(), lengths.rend()),
                       .heads = 6,
                       .kv_heads = 3,
                       .head_width = width,
                       .dropout = 0.1f});
    }
  }
  return cases;
}

// Batches that mix sentences with one and with two tiles per warp; with and without biases and
// dropout.
inline std::vector<AttentionCase> long_attention_cases() {
  const std::vector<std::int32_t> lengths = {255, 1, 256, 70, 257, 31};
  const std::vector<std::int32_t> others = {40, 300, 129, 256, 5, 65};
  std::vector<AttentionCase> cases;
  for (const std::int64_t width : {32, 64, 128}) {
    for (const bool causal : {false, true}) {
      for (const float dropout : {0.0f, 0.1f}) {
        AttentionCase c{.queries = lengths, .heads = 2, .kv_heads = 2, .head_width = width};
        c.causal = causal;
        c.dropout = dropout;
        cases.push_back(c);
        c.kv_heads = 1;
        c.keys = others;
        cases.push_back(c);
        std::swap(c.queries, c.keys);
        cases.push_back(c);
      }
      cases.push_back(
          {.queries = {1100, 3}, .heads = 1, .kv_heads = 1, .head_width = width, .causal = causal});
    }
    for (const Bias bias : kBiases) {
      cases.push_back({.queries = lengths,
                       .heads = 2,
                       .kv_heads = 1,
                       .head_width = width,
                       .causal = true,
                       .bias = bias});
    }
  }
  return cases;
}

}  // namespace nunchi::testing
