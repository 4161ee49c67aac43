// Attention of a decode step: few queries over keys and values at any address.
//
// Self-attention reads its cache through a table of slots, so that a beam is reordered by copying
// indices, not keys; cross-attention reads the memory of the row's source, which all hypotheses of
// a unit share. A row's result depends on its own query and keys only, in a fixed order.
#pragma once

#include <cstdint>

#include "nunchi/kernels/attention.h"
#include "nunchi/kernels/rows.h"
#include "nunchi/kernels/run.h"

namespace nunchi::kernels {

// Which keys each row sees: the rows key(r, 0) to key(r, length[r] - 1) of k, with
//   key(r, p) = slot[hypothesis[r] * slot_stride + p], or begin[r] + p without slots.
struct KeyPlaces {
  const std::int32_t* slot = nullptr;  // [hypotheses, slot_stride]
  // [R]; null: row r is hypothesis r, and the table has rows up to the capacity, for spare ones too
  const std::int32_t* hypothesis = nullptr;
  std::int64_t slot_stride = 0;
  const std::int32_t* begin = nullptr;   // [R]
  const std::int32_t* length = nullptr;  // [R]
};

// The newest key and value of each row, which the kernel adds to the cache. No row sees another's.
template <class T>
struct NewKeys {
  const std::int32_t* slot = nullptr;  // [R] their slots
  const T* k = nullptr;                // [R, kv_heads * D]; null: all keys are in the cache already
  const T* v = nullptr;                // [R, kv_heads * D]
  std::int64_t k_stride = 0, v_stride = 0;
  T* to_k = nullptr;  // the cache, [slots, kv_heads * D]
  T* to_v = nullptr;
};

// out[r] = softmax(q[r] kᵀ * scale + bias) v for each head; the query's position is the last key's.
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
  // An upper bound: the number of keys of each row is in device memory.
  Work work() const {
    return {.flops = 4.0 * static_cast<double>(rows.capacity * max_keys * heads * head_width)};
  }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const DecodeAttention<T>& p);

// to[index[r]] = from[r], or to[r] = from[r] without an index.
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

// Where the tokens and the source of one unit of a search are in the cache, in device memory.
struct UnitSlots {
  std::int32_t prompt = 0;         // tokens of its first step, which all its hypotheses share
  std::int32_t memory_begin = 0;   // first row of its source's memory
  std::int32_t memory_length = 0;  // rows of it; 0: it has no source
};

// Builds the slot table of the next step. Hypothesis h continues hypothesis parent[h] of the step
// before with the tokens from offset[h] to offset[h + 1], which get slots of its unit. The slots of
// a unit come in blocks; of its n-th slot,
//   slot(unit, n) = block[unit, n / block_slots] * block_slots + n % block_slots,
// the first `prompt` hold the tokens of the unit's first step, and later positions have `width`
// slots each, one for each hypothesis of the unit.
struct ExtendSlots {
  std::int64_t hypotheses = 0;
  // In device memory, so that a captured step can be replayed: there are *active * width
  // hypotheses, at most `hypotheses`. Null: exactly as many.
  const std::int32_t* active = nullptr;
  std::int64_t width = 1;     // hypotheses of a unit: h is the (h % width)-th of its unit
  std::int64_t capacity = 0;  // of the arrays of rows
  const std::int32_t* parent = nullptr;    // [hypotheses]; null: the units' first step
  const std::int32_t* unit = nullptr;      // [hypotheses]
  const std::int32_t* offset = nullptr;    // [hypotheses + 1]; null: one token each
  const std::int32_t* old_slot = nullptr;  // [hypotheses before, old_stride]
  std::int64_t old_stride = 0;
  const std::int32_t* old_length = nullptr;  // [hypotheses before]
  const UnitSlots* units = nullptr;          // [units]
  const std::int32_t* block = nullptr;       // [units, block_stride]; null: the cache has no slots
  std::int64_t block_stride = 0;
  std::int64_t block_slots = 1;
  std::int32_t* slot = nullptr;  // [hypotheses, stride]
  std::int64_t stride = 0;
  std::int32_t* length = nullptr;  // [hypotheses] tokens so far, including the new ones
  // Of the rows; zero for spare rows.
  std::int32_t* row_hypothesis = nullptr;  // [capacity]
  std::int32_t* row_position = nullptr;    // [capacity] in the hypothesis
  std::int32_t* row_visible = nullptr;     // [capacity] keys that the row sees: position + 1
  std::int32_t* row_slot = nullptr;        // [capacity]
  std::int32_t* row_begin = nullptr;       // [capacity] memory_begin of the row's unit
  std::int32_t* row_memory = nullptr;      // [capacity] memory_length of the row's unit
  std::int32_t* last_row = nullptr;        // [hypotheses] the row of the newest token
  std::int32_t* count = nullptr;           // [2] rows, hypotheses

  constexpr std::int64_t hypotheses_now() const {
    return active != nullptr ? *active * width : hypotheses;
  }
  // The slot of the token at `position` of hypothesis h, whose unit has this index and prompt.
  constexpr std::int32_t slot_of(std::int64_t unit_index, std::int64_t prompt, std::int64_t h,
                                 std::int64_t position) const {
    if (block == nullptr) return 0;
    const std::int64_t n =
        position < prompt ? position : prompt + (position - prompt) * width + h % width;
    return static_cast<std::int32_t>(
        block[unit_index * block_stride + n / block_slots] * block_slots + n % block_slots);
  }
  static constexpr bool kIsaIndependent = true;
  const char* name() const { return "extend_slots"; }
  Work work() const { return {}; }
};

template <class Target>
void compute(ContextOf<Target>& ctx, const ExtendSlots& p);

}  // namespace nunchi::kernels
