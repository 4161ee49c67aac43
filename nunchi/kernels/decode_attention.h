// Attention of a decode step: few queries over keys and values that stand anywhere.
//
// Self-attention reads its cache through a table of slots, so that a beam is reordered by copying
// numbers, not keys; cross-attention reads the memory of the row's sentence, which all its
// hypotheses share. A row's result depends on its own query and keys alone, in a fixed order.
#pragma once

#include <cstdint>

#include "nunchi/kernels/attention.h"
#include "nunchi/kernels/rows.h"
#include "nunchi/kernels/run.h"

namespace nunchi::kernels {

// Where the keys of each row stand: row r sees the rows key(r, 0) to key(r, length[r] - 1) of k,
// with
//   key(r, p) = slot[hypothesis[r] * slot_stride + p], or begin[r] + p without slots.
struct KeyPlaces {
  const std::int32_t* slot = nullptr;  // [hypotheses, slot_stride]
  // [R]; null: row r is hypothesis r, and the table has rows for spare ones too, up to the capacity
  const std::int32_t* hypothesis = nullptr;
  std::int64_t slot_stride = 0;
  const std::int32_t* begin = nullptr;   // [R]
  const std::int32_t* length = nullptr;  // [R]
};

// The newest key and value of each row, which join the cache on the way: no row sees another's.
template <class T>
struct NewKeys {
  const std::int32_t* slot = nullptr;  // [R] where they go
  const T* k = nullptr;                // [R, kv_heads * D]; null: all keys are in the cache already
  const T* v = nullptr;                // [R, kv_heads * D]
  std::int64_t k_stride = 0, v_stride = 0;
  T* to_k = nullptr;  // the cache, [slots, kv_heads * D]
  T* to_v = nullptr;
};

// out[r] = softmax(q[r] kᵀ * scale + bias) v for each head; the query stands at the last key.
template <class T>
struct DecodeAttention {
  Rows rows;
  int heads = 1;                // H
  int kv_heads = 1;             // head h reads key/value head h / (H / kv_heads)
  std::int64_t head_width = 0;  // D
  const T* q = nullptr;         // [R, H * D]
  const T* k = nullptr;         // [slots, kv_heads * D]
  const T* v = nullptr;         // [slots, kv_heads * D]
  std::int64_t q_stride = 0, k_stride = 0, v_stride = 0;
  KeyPlaces keys;
  NewKeys<T> newest;
  std::int64_t max_keys = 0;  // no row sees more
  double scale = 1;
  ScoreBias<T> bias;
  T* out = nullptr;  // [R, H * D]; tail rows become zero
  std::int64_t out_stride = 0;

  const char* name() const { return keys.slot != nullptr ? "self_attention" : "cross_attention"; }
  // At most: how many keys each row sees stands in device memory.
  Work work() const {
    return {.flops = 4.0 * static_cast<double>(rows.capacity * max_keys * heads * head_width)};
  }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const DecodeAttention<T>& p);

// to[index[r]] = from[r]: new keys and values join a cache. Without an index, to[r] = from[r].
template <class T>
struct ScatterRows {
  Rows rows;
  std::int64_t width = 0;
  const std::int32_t* index = nullptr;  // [R]; may be null
  const T* from = nullptr;              // [R, width]
  std::int64_t from_stride = 0;
  T* to = nullptr;  // [slots, width]
  std::int64_t to_stride = 0;

  const char* name() const { return "scatter_rows"; }
  Work work() const {
    return {.bytes = 2.0 * static_cast<double>(rows.capacity * width) * sizeof(T)};
  }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ScatterRows<T>& p);

// to[r] = from[index[r]]; tail rows become zero.
template <class T>
struct GatherRows {
  Rows rows;
  std::int64_t width = 0;
  const std::int32_t* index = nullptr;  // [R]
  const T* from = nullptr;              // [any, width]
  std::int64_t from_stride = 0;
  T* to = nullptr;  // [R, width]

  const char* name() const { return "gather_rows"; }
  Work work() const {
    return {.bytes = 2.0 * static_cast<double>(rows.capacity * width) * sizeof(T)};
  }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const GatherRows<T>& p);

// The next step's table of slots. Hypothesis h goes on from hypothesis parent[h] of the step before
// with the tokens from offset[h] to offset[h + 1]; the token of row r gets slot first_slot + r.
struct ExtendSlots {
  std::int64_t hypotheses = 0;
  std::int64_t first_slot = 0;
  // The same from device memory, so that a step can be replayed: hypotheses is *active · width, at
  // most `hypotheses`, and the first slot is *taken_before. Null: as said above.
  const std::int32_t* active = nullptr;
  std::int64_t width = 1;
  const std::int32_t* taken_before = nullptr;
  std::int64_t capacity = 0;               // of the arrays of rows
  const std::int32_t* parent = nullptr;    // [hypotheses]; null: there was no step before
  const std::int32_t* sentence = nullptr;  // [hypotheses]
  const std::int32_t* offset = nullptr;    // [hypotheses + 1]; null: one token each
  const std::int32_t* old_slot = nullptr;  // [hypotheses before, old_stride]
  std::int64_t old_stride = 0;
  const std::int32_t* old_length = nullptr;  // [hypotheses before]
  std::int32_t* slot = nullptr;              // [hypotheses, stride]
  std::int64_t stride = 0;
  std::int32_t* length = nullptr;  // [hypotheses] tokens so far, the new ones included
  // Where the memory of each sentence stands; null: there is none.
  const std::int32_t* memory_begin = nullptr;   // [sentences]
  const std::int32_t* memory_length = nullptr;  // [sentences]
  // Of rows, past the last: zeros.
  std::int32_t* row_hypothesis = nullptr;  // [capacity]
  std::int32_t* row_position = nullptr;    // [capacity] place in the hypothesis
  std::int32_t* row_visible = nullptr;     // [capacity] keys that the row sees: position + 1
  std::int32_t* row_slot = nullptr;        // [capacity]
  std::int32_t* row_begin = nullptr;       // [capacity] memory_begin of the row's sentence
  std::int32_t* row_memory = nullptr;      // [capacity] memory_length of the row's sentence
  std::int32_t* last_row = nullptr;        // [hypotheses] the row of the newest token
  std::int32_t* count = nullptr;           // [2] rows, hypotheses
  std::int32_t* taken = nullptr;           // [1] slots that are taken now; may be null

  constexpr std::int64_t hypotheses_now() const {
    return active != nullptr ? *active * width : hypotheses;
  }
  constexpr std::int64_t first_slot_now() const {
    return taken_before != nullptr ? *taken_before : first_slot;
  }
  static constexpr bool kIsaIndependent = true;
  const char* name() const { return "extend_slots"; }
  Work work() const { return {}; }
};

template <class Target>
void compute(ContextOf<Target>& ctx, const ExtendSlots& p);

}  // namespace nunchi::kernels
