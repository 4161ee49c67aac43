// Additive attention of the queries of each sentence over its keys and values.
#pragma once

#include "nunchi/ops/attention.h"
#include "nunchi/ops/decode/decode_attention.h"

namespace nunchi {

struct AdditiveHeads {
  Variable q;             // [T, A], projected
  Variable k;             // [S, A], projected
  Variable v;             // [S, C]
  Variable score_vector;  // [A]
};

struct AdditiveResult {
  Variable out;                    // [T, C]
  AttentionWeightsResult weights;  // for one head; undefined unless recorded or traced
};

// Sentences of `queries` and `keys` are the same in number and order.
AdditiveResult additive_attention(const AdditiveHeads& heads, const Ragged& queries,
                                  const Ragged& keys);

// The same for the rows of a decode step, each over the keys that start at keys.begin: [R, C]. Not
// recorded.
Tensor additive_decode_attention(const AdditiveHeads& heads, const Ragged& rows,
                                 const VisibleKeys& keys);

}  // namespace nunchi
