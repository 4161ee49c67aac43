// Buffers for attention over a ragged batch in the most general layout: q, k and v are slices of
// wider rows. Keys may have other lengths than queries; then they are in another order, with gaps
// between sentences.
#pragma once

#include <numeric>

#include "nunchi/kernels/attention.h"
#include "tests/reference/attention.h"
#include "tests/reference/score_bias.h"
#include "tests/reference/versions.h"

namespace nunchi::testing {

struct AttentionSetup {
  std::vector<std::int32_t> queries = kLengths;
  std::vector<std::int32_t> keys = {};  // empty: self-attention, keys have the lengths of queries
  int heads = 4, kv_heads = 4;
  std::int64_t width = 20;
  bool causal = false;
  Bias bias = Bias::none;
  float dropout = 0;
  double spread = 2;                       // range of the elements of q and k
  std::vector<std::int32_t> indices = {};  // sentences in the global batch; empty: 0, 1, 2, …
};

// Columns [column, column + width) of a matrix with rows `stride` apart.
struct Slice {
  std::int64_t column, width, stride;
};

// Copies a slice into a matrix without gaps.
template <class T>
std::vector<T> dense(const std::vector<T>& matrix, const Slice& slice, std::int64_t rows) {
  std::vector<T> result;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto from = matrix.begin() + r * slice.stride + slice.column;
    result.insert(result.end(), from, from + slice.width);
  }
  return result;
}

template <class T>
struct AttentionProblem {
  explicit AttentionProblem(const AttentionSetup& setup)
      : setup(setup), batch(setup.queries, 9, setup.indices), shared(setup.keys.empty()) {
    const std::int64_t q_width = setup.heads * setup.width, kv_width = setup.kv_heads * setup.width;
    length = shared ? setup.queries : setup.keys;
    begin.resize(length.size());
    if (shared) {
      std::copy(batch.offsets.begin(), batch.offsets.end() - 1, begin.begin());
      key_rows = batch.capacity;
      key_count = batch.count;
      const std::int64_t stride = q_width + 2 * kv_width + 7;
      q = {0, q_width, stride};
      k = {q_width + 2, kv_width, stride};
      v = {q_width + kv_width + 5, kv_width, stride};
    } else {
      for (std::size_t b = length.size(); b-- > 0;) {
        begin[b] = static_cast<std::int32_t>(key_rows + 2);
        key_rows += length[b] + 2;
      }
      key_count = static_cast<std::int32_t>(key_rows);
      key_rows += 5;
      q = {1, q_width, q_width + 3};
      k = {0, kv_width, 2 * kv_width + 1};
      v = {kv_width + 1, kv_width, 2 * kv_width + 1};
    }
    out = {2, q_width, q_width + 3};
    queries = random_values<T>(batch.capacity * q.stride, 1, setup.spread);
    keys = shared ? queries : random_values<T>(key_rows * k.stride, 2, setup.spread);
    d_queries = unwritten<T>(static_cast<std::int64_t>(queries.size()));
    d_keys = unwritten<T>(static_cast<std::int64_t>(keys.size()));
    output = unwritten<T>(batch.capacity * out.stride);
    d_output = random_values<T>(batch.capacity * out.stride, 3);
    log_sum = unwritten<T>(setup.heads * batch.capacity);
    table = random_values<T>(buckets_of(setup.bias) * setup.heads, 4);
    d_table = random_values<T>(buckets_of(setup.bias) * setup.heads, 5);
    slopes = random_values<T>(setup.heads, 6, 0.5);
  }
  AttentionProblem(const AttentionProblem&) = delete;
  AttentionProblem& operator=(const AttentionProblem&) = delete;

  kernels::AttentionInputs<T> inputs() const {
    return {.sentences = static_cast<std::int64_t>(length.size()),
            .heads = setup.heads,
            .kv_heads = setup.kv_heads,
            .head_width = setup.width,
            .max_queries = batch.longest,
            .max_keys = *std::max_element(length.begin(), length.end()),
            .q = queries.data() + q.column,
            .k = keys.data() + k.column,
            .v = keys.data() + v.column,
            .q_stride = q.stride,
            .k_stride = k.stride,
            .v_stride = v.stride,
            .q_offsets = batch.offsets.data(),
            .k_begin = begin.data(),
            .k_length = length.data(),
            .sentence = batch.sentence_index.data(),
            .causal = setup.causal,
            .scale = 1 / std::sqrt(static_cast<double>(setup.width)),
            .bias = score_bias(setup.bias, slopes.data(), table.data()),
            .dropout = {.probability = setup.dropout, .operation_id = 21, .key = &kKey}};
  }

  kernels::Attention<T> forward() {
    return {.in = inputs(),
            .rows = batch.rows(),
            .out = output.data() + out.column,
            .out_stride = out.stride,
            .log_sum = log_sum.data()};
  }

  // Gradients have the layout of their variables.
  kernels::AttentionBackward<T> backward() {
    std::vector<T>& d_kv = shared ? d_queries : d_keys;
    return {.in = inputs(),
            .rows = batch.rows(),
            .key_rows = {.capacity = key_rows, .count = &key_count},
            .out = output.data() + out.column,
            .d_out = d_output.data() + out.column,
            .out_stride = out.stride,
            .d_out_stride = out.stride,
            .log_sum = log_sum.data(),
            .d_q = d_queries.data() + q.column,
            .d_k = d_kv.data() + k.column,
            .d_v = d_kv.data() + v.column,
            .d_q_stride = q.stride,
            .d_k_stride = k.stride,
            .d_v_stride = v.stride,
            .d_table = inputs().bias.buckets > 0 ? d_table.data() : nullptr};
  }

  std::vector<T> d_q() const { return dense(d_queries, q, batch.capacity); }
  std::vector<T> d_k() const { return dense(shared ? d_queries : d_keys, k, key_rows); }
  std::vector<T> d_v() const { return dense(shared ? d_queries : d_keys, v, key_rows); }
  // [capacity, H * D]
  std::vector<T> dense_out() const { return dense(output, out, batch.capacity); }

  inline static const RandomKey kKey{.seed = 8, .step = 5};

  AttentionSetup setup;
  Batch batch;
  bool shared;                // whether keys are in the rows of the queries (self-attention)
  std::int64_t key_rows = 0;  // capacity, including rows past the count
  std::int32_t key_count = 0;
  Slice q{}, k{}, v{}, out{};
  std::vector<std::int32_t> begin, length;
  std::vector<T> queries, keys, output, log_sum, table, slopes;
  std::vector<T> d_queries, d_keys, d_output, d_table;
};

// Combinations of lengths, masks, biases, head groups and dropout: each pair at least once.
inline std::vector<AttentionSetup> attention_setups() {
  const std::vector<std::int32_t> longer = {40, 70, 130, 32, 64}, other = {20, 0, 65, 127, 12};
  std::vector<AttentionSetup> setups;
  for (const std::int64_t width : kWidths) {
    setups.push_back({.heads = 1, .kv_heads = 1, .width = width});
    setups.push_back({.heads = 1, .kv_heads = 1, .width = width, .causal = true});
  }
  for (const Bias bias : kBiases) {
    setups.push_back({.bias = bias});
    setups.push_back({.kv_heads = 2, .causal = true, .bias = bias, .dropout = 0.1f});
    setups.push_back({.keys = longer, .kv_heads = 1, .causal = true, .bias = bias});
    setups.push_back({.keys = other, .bias = bias});
  }
  setups.push_back({.kv_heads = 2, .dropout = 0.5f, .indices = {9, 4, 1000000, 0, 7}});
  setups.push_back({.keys = other, .kv_heads = 1, .width = 37, .dropout = 0.1f});
  setups.push_back({.keys = longer, .causal = true, .dropout = 0.1f});
  setups.push_back({.keys = other, .causal = true});  // some queries are before the first key
  setups.push_back({.queries = {3, 0, 33, 0}, .keys = {5, 7, 0, 0}});
  // More queries than a thread's chunk.
  setups.push_back(
      {.queries = {450}, .heads = 1, .kv_heads = 1, .causal = true, .bias = Bias::slopes});
  setups.push_back({.queries = {0, 0}});
  setups.push_back({.causal = true, .spread = 40});  // scores of thousands
  return setups;
}

inline std::string describe(const AttentionSetup& s) {
  return "heads " + std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) + ", width " +
         std::to_string(s.width) + (s.keys.empty() ? "" : ", other keys") +
         (s.causal ? ", causal" : "") + ", bias " + std::to_string(static_cast<int>(s.bias)) +
         ", dropout " + std::to_string(s.dropout) + ", spread " + std::to_string(s.spread);
}

// Calls f.operator()<T>(setup) for f32 and f64.
template <class F>
void for_both_types(const AttentionSetup& setup, F&& f) {
  SCOPED_TRACE(describe(setup));
  {
    SCOPED_TRACE("f32");
    f.template operator()<float>(setup);
  }
  {
    SCOPED_TRACE("f64");
    f.template operator()<double>(setup);
  }
}

}  // namespace nunchi::testing
