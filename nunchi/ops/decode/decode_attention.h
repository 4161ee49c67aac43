// Attention of a decode step, and scattering and gathering of rows. Inference only.
#pragma once

#include "nunchi/ops/attention.h"

namespace nunchi {

// Which keys each row sees; see kernels/decode_attention.h.
struct VisibleKeys {
  Tensor slot;                // i32 [hypotheses, positions]; undefined: keys are adjacent rows
  Tensor hypothesis;          // i32 [R], with slots; undefined: each row is its own hypothesis
  Tensor begin;               // i32 [R], without slots: row of the first key
  Tensor length;              // i32 [R] number of keys
  std::int64_t max_keys = 0;  // no row sees more
};

struct DecodeHeads {
  Tensor q;  // [R, H · D]
  Tensor k;  // [slots, kv_heads · D]
  Tensor v;  // [slots, kv_heads · D]
};

// The newest key and value of each row, which are added to the cache (DecodeHeads' k and v).
struct NewKeys {
  Tensor k;     // [R, kv_heads · D]
  Tensor v;     // [R, kv_heads · D]
  Tensor slot;  // i32 [R] where to add them
};

// Returns [R, H · D]. The position of a row's query is that of its last key; the options' causal
// and dropout are ignored. With `newest`, each row must belong to a different hypothesis: no row
// sees the newest key of another.
Tensor decode_attention(const DecodeHeads& heads, const Ragged& rows, const VisibleKeys& keys,
                        const AttentionOptions& options, const NewKeys& newest = {});

// to[index[r]] = from[r], or to[r] = from[r] if the index is undefined.
void scatter_rows(const Tensor& from, const Ragged& rows, const Tensor& index, const Tensor& to);
// Returns from[index[r]] for each row r: [R, width].
Tensor gather_rows(const Tensor& from, const Ragged& rows, const Tensor& index);

}  // namespace nunchi
