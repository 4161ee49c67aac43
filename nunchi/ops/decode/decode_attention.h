// Attention of a decode step, and the rows that it moves. Nothing here is recorded: a model that
// decodes is not being trained.
#pragma once

#include "nunchi/ops/attention.h"

namespace nunchi {

// Where the keys of each row stand; see kernels/decode_attention.h.
struct KeyPlaces {
  Tensor slot;                // i32 [hypotheses, positions]; undefined: keys stand in a row
  Tensor hypothesis;          // i32 [R], with slots; undefined: each row is its own hypothesis
  Tensor begin;               // i32 [R], without
  Tensor length;              // i32 [R]
  std::int64_t max_keys = 0;  // no row sees more
};

struct DecodeHeads {
  Tensor q;  // [R, H · D]
  Tensor k;  // [slots, kv_heads · D]
  Tensor v;  // [slots, kv_heads · D]
};

// The newest key and value of each row, which join the cache (DecodeHeads' k and v) on the way.
struct NewKeys {
  Tensor k;     // [R, kv_heads · D]
  Tensor v;     // [R, kv_heads · D]
  Tensor slot;  // i32 [R]
};

// [R, H · D]. The query of a row stands at its last key; options' causal and dropout mean nothing.
// With `newest`, no row may see another's newest key: each is of another hypothesis.
Tensor decode_attention(const DecodeHeads& heads, const Ragged& rows, const KeyPlaces& keys,
                        const AttentionOptions& options, const NewKeys& newest = {});

// to[index[r]] = from[r]; an undefined index leaves rows where they are.
void scatter_rows(const Tensor& from, const Ragged& rows, const Tensor& index, const Tensor& to);
// from[index[r]] for each row: [R, width]
Tensor gather_rows(const Tensor& from, const Ragged& rows, const Tensor& index);

}  // namespace nunchi
