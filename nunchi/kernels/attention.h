// Exact attention over ragged batches, tiled with an online softmax: the score matrix is never
// stored, and memory is linear in the length.
//
// A query's result depends only on its own row and on its sentence's keys and values, summed in a
// fixed order: neither the rest of the batch nor the number of threads changes a bit of it.
#pragma once

#include <cstdint>
#include <vector>

#include "nunchi/kernels/dropout.h"
#include "nunchi/kernels/rows.h"
#include "nunchi/kernels/run.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

// The term added to the score of (query i, key j), computed from j - i inside the kernel.
//   slopes (ALiBi):  -slope[h] * |i - j|
//   buckets:         table[bucket(j - i), h], with one of two kinds of buckets:
//     T5:        in each direction, half of the buckets hold one distance each; the others grow
//                logarithmically up to max_distance
//     clipped:   every distance up to max_distance has its own bucket; longer distances share the
//                last one
template <class T>
struct ScoreBias {
  enum class Kind : std::uint8_t { none, slopes, buckets };
  Kind kind = Kind::none;
  // [H]; not rounded to T, because they are multiplied by long distances.
  const Accumulator<T>* slopes = nullptr;
  const T* table = nullptr;  // [buckets, H]
  int buckets = 0;
  int max_distance = 0;
  bool bidirectional = false;  // keys after the query have their own buckets
  bool clipped = false;        // clipped distances instead of T5's buckets
  // The bucket_starts() of T5 buckets. Callers leave it null: the CPU kernels set it.
  const std::int32_t* starts = nullptr;
};

// The T5 bucket of the relative position key - query.
int relative_bucket(std::int64_t relative, int buckets, int max_distance, bool bidirectional);

// The smallest distance in each T5 bucket of one direction: bucket i holds the distances in
// [starts[i], starts[i + 1]). With it kernels compare integers instead of taking logarithms.
std::vector<std::int32_t> bucket_starts(int buckets, int max_distance, bool bidirectional);

// The bucket of a clipped distance: 0 to max_distance for keys up to the query, max_distance + 1 to
// 2 · max_distance for keys after it.
int clipped_bucket(std::int64_t relative, int max_distance, bool bidirectional);
constexpr int clipped_buckets(int max_distance, bool bidirectional) {
  return bidirectional ? 2 * max_distance + 1 : max_distance + 1;
}

// Arguments shared by Attention, AttentionBackward and AttentionWeights. Rows of q, k and v are
// `*_stride` elements apart, so they can be slices of one QKV projection. Head h reads key/value
// head h / (H / kv_heads).
template <class T>
struct AttentionInputs {
  std::int64_t sentences = 0;  // B
  int heads = 1;               // H
  int kv_heads = 1;
  std::int64_t head_width = 0;   // D
  std::int64_t max_queries = 0;  // queries of the longest sentence, known on the host
  std::int64_t max_keys = 0;     // keys of the longest sentence, known on the host
  const T* q = nullptr;          // [T, H * D]
  const T* k = nullptr;          // [S, kv_heads * D]
  const T* v = nullptr;          // [S, kv_heads * D]
  std::int64_t q_stride = 0, k_stride = 0, v_stride = 0;
  // [B + 1] the queries of sentence b are the rows q_offsets[b] to q_offsets[b + 1] - 1.
  const std::int32_t* q_offsets = nullptr;
  const std::int32_t* k_begin = nullptr;   // [B] first key of sentence b
  const std::int32_t* k_length = nullptr;  // [B] number of its keys; with 0 keys the output is zero
  // [B] index of sentence b in the global batch, for dropout.
  const std::int32_t* sentence = nullptr;
  // Query i sees key j only if j <= i + k_length - queries: the last query sees all keys.
  bool causal = false;
  double scale = 1;
  ScoreBias<T> bias;
  Dropout dropout;         // weight (h, i, j) is drawn at row i, column h * 2^23 + j
  double score_pairs = 0;  // number of (query, key) pairs of all sentences, for profiles
};

// out = dropout(softmax(q k^T * scale + bias)) v
template <class T>
struct Attention {
  AttentionInputs<T> in;
  Rows rows;         // of the queries
  T* out = nullptr;  // [T, H * D]; tail rows become zero
  std::int64_t out_stride = 0;
  // [H, T] log-sum-exp of each query's scores, for the backward pass; may be null.
  Accumulator<T>* log_sum = nullptr;

  const char* name() const { return "attention"; }
  Work work() const { return {.flops = 4.0 * in.heads * in.score_pairs * double(in.head_width)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Attention<T>& p);

// The gradients of q, k, v and of the bias table.
template <class T>
struct AttentionBackward {
  AttentionInputs<T> in;
  Rows rows;                 // of the queries
  Rows key_rows;             // of the keys
  const T* out = nullptr;    // [T, H * D]
  const T* d_out = nullptr;  // [T, H * D]
  std::int64_t out_stride = 0, d_out_stride = 0;
  const Accumulator<T>* log_sum = nullptr;  // [H, T]
  // Each is overwritten (tail rows with zeros) or accumulated into.
  T* d_q = nullptr;
  T* d_k = nullptr;
  T* d_v = nullptr;
  std::int64_t d_q_stride = 0, d_k_stride = 0, d_v_stride = 0;
  bool accumulate_q = false, accumulate_k = false, accumulate_v = false;
  Accumulator<T>* d_table = nullptr;  // [buckets, H], accumulated into; null: not computed

  const char* name() const { return "attention_backward"; }
  Work work() const { return {.flops = 10.0 * in.heads * in.score_pairs * double(in.head_width)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const AttentionBackward<T>& p);

// The softmax weight of each (query, key) pair, without dropout.
template <class T>
struct AttentionWeights {
  AttentionInputs<T> in;
  const std::int64_t* begin = nullptr;  // [B] offset of sentence b's weights in `weights`
  Accumulator<T>* weights = nullptr;    // [H, queries, keys] of each sentence

  const char* name() const { return "attention_weights"; }
  Work work() const { return {}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const AttentionWeights<T>& p);

}  // namespace nunchi::kernels
