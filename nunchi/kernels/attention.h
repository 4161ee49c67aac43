// Exact attention over ragged batches, tiled with an online softmax: the score matrix never exists,
// memory is linear in the length.
//
// A query's result depends on its own row and on its sentence's keys and values alone, in a fixed
// order: neither the batch nor the threads change bits.
#pragma once

#include <cstdint>
#include <vector>

#include "nunchi/kernels/dropout.h"
#include "nunchi/kernels/rows.h"
#include "nunchi/kernels/run.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

// What is added to the score of (query i, key j), evaluated from j - i inside the kernel.
//   slopes (ALiBi):  -slope[h] * |i - j|
//   buckets:         table[bucket(j - i), h], where
//     T5's:      half of the buckets (per direction) are exact distances, the rest grow
//                logarithmically up to max_distance
//     clipped:   every distance up to max_distance has a bucket of its own, longer ones share the
//                last
template <class T>
struct ScoreBias {
  enum class Kind : std::uint8_t { none, slopes, buckets };
  Kind kind = Kind::none;
  const Summed<T>* slopes = nullptr;  // [H]; exact: they are multiplied by long distances
  const T* table = nullptr;           // [buckets, H]
  int buckets = 0;
  int max_distance = 0;
  bool bidirectional = false;  // keys after the query have buckets of their own
  bool clipped = false;        // not T5's buckets
  // bucket_starts() of T5's buckets, which the CPU's kernels put here themselves.
  const std::int32_t* starts = nullptr;
};

// T5's bucket of the relative position key - query.
int relative_bucket(std::int64_t relative, int buckets, int max_distance, bool bidirectional);

// The distances at which the buckets of one direction begin: bucket i holds those from [i] up to
// [i + 1]. Kernels compare whole numbers instead of taking logarithms.
std::vector<std::int32_t> bucket_starts(int buckets, int max_distance, bool bidirectional);

// The bucket where each distance up to max_distance has its own: 0 to max_distance for keys up to
// the query, max_distance + 1 to 2 · max_distance for those after it.
int clipped_bucket(std::int64_t relative, int max_distance, bool bidirectional);
constexpr int clipped_buckets(int max_distance, bool bidirectional) {
  return bidirectional ? 2 * max_distance + 1 : max_distance + 1;
}

// What forward, backward and the weights have in common. Rows of q, k and v are `*_stride` elements
// apart, so they can be slices of one QKV product. Head h reads key/value head h / (H / kv_heads).
template <class T>
struct AttentionInputs {
  std::int64_t sentences = 0;  // B
  int heads = 1;               // H
  int kv_heads = 1;
  std::int64_t head_width = 0;   // D
  std::int64_t max_queries = 0;  // the longest sentence's, known on the host
  std::int64_t max_keys = 0;
  const T* q = nullptr;  // [T, H * D]
  const T* k = nullptr;  // [S, kv_heads * D]
  const T* v = nullptr;  // [S, kv_heads * D]
  std::int64_t q_stride = 0, k_stride = 0, v_stride = 0;
  const std::int32_t* q_offsets = nullptr;  // [B + 1] queries of sentence b: rows from, to
  const std::int32_t* k_begin = nullptr;    // [B] its first key
  const std::int32_t* k_length = nullptr;   // [B] and their number; none: the output is zero
  const std::int32_t* sentence = nullptr;   // [B] its index in the global batch, for draws
  // Query i sees key j only if j <= i + k_length - queries: the last query sees all keys.
  bool causal = false;
  double scale = 1;
  ScoreBias<T> bias;
  Dropout dropout;         // of the weights; a draw's row is i, its column h * 2^23 + j
  double score_pairs = 0;  // (query, key) pairs of all sentences, for a profile
};

// out = dropout(softmax(q k^T * scale + bias)) v
template <class T>
struct Attention {
  AttentionInputs<T> in;
  Rows rows;         // of the queries
  T* out = nullptr;  // [T, H * D]; tail rows become zero
  std::int64_t out_stride = 0;
  Summed<T>* log_sum = nullptr;  // [H, T] log of the softmax's denominator, for the way back

  const char* name() const { return "attention"; }
  Work work() const { return {.flops = 4.0 * in.heads * in.score_pairs * double(in.head_width)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Attention<T>& p);

template <class T>
struct AttentionBackward {
  AttentionInputs<T> in;
  Rows rows;                 // of the queries
  Rows key_rows;             // of the keys
  const T* out = nullptr;    // [T, H * D]
  const T* d_out = nullptr;  // [T, H * D]
  std::int64_t out_stride = 0, d_out_stride = 0;
  const Summed<T>* log_sum = nullptr;  // [H, T]
  // Written, tail rows as zero, or added to.
  T* d_q = nullptr;
  T* d_k = nullptr;
  T* d_v = nullptr;
  std::int64_t d_q_stride = 0, d_k_stride = 0, d_v_stride = 0;
  bool accumulate_q = false, accumulate_k = false, accumulate_v = false;
  Summed<T>* d_table = nullptr;  // [buckets, H], added to; null: no table or nobody wants it

  const char* name() const { return "attention_backward"; }
  Work work() const { return {.flops = 10.0 * in.heads * in.score_pairs * double(in.head_width)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const AttentionBackward<T>& p);

// The weights themselves, without dropout: what softmax gave each (query, key) pair.
template <class T>
struct AttentionWeights {
  AttentionInputs<T> in;
  const std::int64_t* begin = nullptr;  // [B] sentence b's weights start here in `weights`
  Summed<T>* weights = nullptr;         // per sentence [H, queries, keys]

  const char* name() const { return "attention_weights"; }
  Work work() const { return {}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const AttentionWeights<T>& p);

}  // namespace nunchi::kernels
