// Additive attention (Bahdanau et al. 2015) over ragged batches: the score of (query, key) is
//
//   score_vector · tanh(q + k)
//
// with q and k already projected. The softmax over a sentence's keys is exact. The forward pass
// saves the weights, which are small; the backward pass recomputes the tanh of every (query, key)
// pair and column.
//
// A query's result depends only on its own row and on its sentence's keys and values, summed in a
// fixed order: neither the rest of the batch nor the number of threads changes a bit of it.
#pragma once

#include <cstdint>

#include "nunchi/kernels/rows.h"
#include "nunchi/kernels/run.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

// Arguments of the forward and the backward pass.
template <class T>
struct AdditiveInputs {
  std::int64_t sentences = 0;        // B
  std::int64_t width = 0;            // A: columns of queries and keys
  std::int64_t value_width = 0;      // C
  std::int64_t max_queries = 0;      // queries of the longest sentence, known on the host
  std::int64_t max_keys = 0;         // keys of the longest sentence, known on the host
  std::int64_t query_key_pairs = 0;  // upper bound of their number in all sentences
  const T* q = nullptr;              // [T, A]
  const T* k = nullptr;              // [S, A]
  const T* v = nullptr;              // [S, C]
  const T* score_vector = nullptr;   // [A]
  std::int64_t q_stride = 0, k_stride = 0, v_stride = 0;
  // [B + 1] the queries of sentence b are the rows q_offsets[b] to q_offsets[b + 1] - 1; null: only
  // row b.
  const std::int32_t* q_offsets = nullptr;
  const std::int32_t* k_begin = nullptr;   // [B] first key of sentence b
  const std::int32_t* k_length = nullptr;  // [B] number of its keys; with 0 keys the output is zero
  // [B] offset of sentence b's weights [queries, keys]; null: b · max_keys, with one query per
  // sentence.
  const std::int64_t* weight_offsets = nullptr;
};

// out = softmax(scores) v
template <class T>
struct AdditiveAttention {
  AdditiveInputs<T> in;
  Rows rows;         // of the queries
  T* out = nullptr;  // [T, C]; tail rows become zero
  std::int64_t out_stride = 0;
  Accumulator<T>* weights = nullptr;  // sentence b's are at in.weight_offsets[b]; null: not written

  const char* name() const { return "additive_attention"; }
  Work work() const {
    return {.flops =
                2.0 * static_cast<double>(in.query_key_pairs * (2 * in.width + in.value_width))};
  }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const AdditiveAttention<T>& p);

// The gradients of q, k, v and the score_vector.
template <class T>
struct AdditiveAttentionBackward {
  AdditiveInputs<T> in;
  Rows rows;                                // of the queries
  Rows key_rows;                            // of the keys
  const Accumulator<T>* weights = nullptr;  // of the forward pass
  const T* d_out = nullptr;                 // [T, C]
  std::int64_t d_out_stride = 0;
  // Each is overwritten (tail rows with zeros) or accumulated into.
  T* d_q = nullptr;  // [T, A]
  T* d_k = nullptr;  // [S, A]
  T* d_v = nullptr;  // [S, C]
  std::int64_t d_q_stride = 0, d_k_stride = 0, d_v_stride = 0;
  bool accumulate_q = false, accumulate_k = false, accumulate_v = false;
  Accumulator<T>* d_score_vector = nullptr;  // [A], accumulated into

  const char* name() const { return "additive_attention_backward"; }
  Work work() const {
    return {.flops =
                4.0 * static_cast<double>(in.query_key_pairs * (2 * in.width + in.value_width))};
  }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const AdditiveAttentionBackward<T>& p);

}  // namespace nunchi::kernels
