// Attention of the queries of each sentence over its keys and values.
#pragma once

#include "nunchi/autograd/variable.h"
#include "nunchi/kernels/attention.h"
#include "nunchi/ops/dropout.h"
#include "nunchi/tensor/ragged.h"

namespace nunchi {

// Describes the bias that is added to scores; kernels evaluate it from the distance between query
// and key.
struct ScoreBias {
  enum class Kind : std::uint8_t { none, slopes, buckets };
  Kind kind = Kind::none;
  Tensor slopes;   // [H], of the accumulator's type
  Variable table;  // [buckets, H]
  int max_distance = 128;
  bool bidirectional = false;
  bool clipped = false;  // every distance up to max_distance has a bucket of its own
};

struct AttentionOptions {
  int heads = 1;
  int kv_heads = 0;  // 0: as many as heads
  bool causal = false;
  double scale = 0;  // 0: 1 / √(head width)
  ScoreBias bias;
  Dropout dropout;
};

// q [T, H · D] of `queries`; k and v [S, kv_heads · D] of `keys`, whose sentences are the same in
// number and order. All three may be views of columns. Returns [T, H · D].
Variable attention(const Variable& q, const Variable& k, const Variable& v, const Ragged& queries,
                   const Ragged& keys, const AttentionOptions& options);

// The weights of attention(), without dropout. The weights of sentence b, [H, queries, keys], start
// at element begin[b].
struct AttentionWeightsResult {
  Tensor weights;
  std::vector<std::int64_t> begin;  // [B]
};
AttentionWeightsResult attention_weights(const Tensor& q, const Tensor& k, const Ragged& queries,
                                         const Ragged& keys, const AttentionOptions& options);

}  // namespace nunchi
