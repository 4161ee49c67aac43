// Attention of a decode step: few queries over cached keys and values.
//
// Self-attention reads its cache through a slot table, so that a beam is reordered by copying
// indices instead of keys. Cross-attention reads the memory (encoder output) of the row's source,
// which all hypotheses of a unit share. A row's result depends only on its own query and keys,
// summed in a fixed order.
#pragma once

#include <cstdint>

#include "nunchi/kernels/attention.h"
#include "nunchi/kernels/rows.h"
#include "nunchi/kernels/run.h"

namespace nunchi::kernels {

// The keys that each row sees: rows key(r, 0) to key(r, length[r] - 1) of k, where
//   key(r, p) = slot[hypothesis[r] * slot_stride + p], or begin[r] + p if `slot` is null.
struct VisibleKeys {
  const std::int32_t* slot = nullptr;  // [hypotheses, slot_stride]
  // [R]; null: row r is hypothesis r, and the slot table has as many rows as the batch has
  // capacity.
  const std::int32_t* hypothesis = nullptr;
  std::int64_t slot_stride = 0;
  const std::int32_t* begin = nullptr;   // [R]; not read if there are slots
  const std::int32_t* length = nullptr;  // [R]
};

// The newest key and value of each row, which the kernel adds to the cache. A row must not see the
// new keys of other rows.
template <class T>
struct NewKeys {
  const std::int32_t* slot = nullptr;  // [R] where they are stored in the cache
  const T* k = nullptr;                // [R, kv_heads * D]; null: all keys are in the cache already
  const T* v = nullptr;                // [R, kv_heads * D]
  std::int64_t k_stride = 0, v_stride = 0;
  T* to_k = nullptr;  // the cache, [slots, kv_heads * D]
  T* to_v = nullptr;
};

// out[r] = softmax(q[r] kᵀ * scale + bias) v for each head. For the bias, the query is at the
// position of the row's last key.
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
  VisibleKeys keys;
  NewKeys<T> newest;
  std::int64_t max_keys = 0;  // upper bound of keys.length
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

// The prompt length and the source memory of one unit of a search, in device memory.
struct UnitSlots {
  std::int32_t prompt = 0;         // tokens of the unit's first step, shared by its hypotheses
  std::int32_t memory_begin = 0;   // first row of the memory of the unit's source
  std::int32_t memory_length = 0;  // rows of that memory; 0: the unit has no source
};

// Builds the slot table of the next step. Hypothesis h continues hypothesis parent[h] of the
// previous step with the tokens offset[h] to offset[h + 1] - 1, which get slots of its unit. The
// cache is divided into blocks of block_slots slots, and a unit owns some blocks: its n-th slot is
//   slot(unit, n) = block[unit, n / block_slots] * block_slots + n % block_slots.
// The first `prompt` slots of a unit hold the tokens of its first step. Each later position has
// `hypotheses_per_unit` slots, one for each hypothesis of the unit.
struct ExtendSlots {
  std::int64_t hypotheses = 0;
  // [1] active units, in device memory, so that a captured step can be replayed: the step has
  // *active * hypotheses_per_unit hypotheses, at most `hypotheses`. Null: it has `hypotheses`.
  const std::int32_t* active = nullptr;
  // Hypothesis h has the index h % hypotheses_per_unit in its unit.
  std::int64_t hypotheses_per_unit = 1;
  std::int64_t capacity = 0;               // of the row_* arrays
  const std::int32_t* parent = nullptr;    // [hypotheses]; null: this is the units' first step
  const std::int32_t* unit = nullptr;      // [hypotheses]
  const std::int32_t* offset = nullptr;    // [hypotheses + 1]; null: one token per hypothesis
  const std::int32_t* old_slot = nullptr;  // [old hypotheses, old_stride] the previous slot table
  std::int64_t old_stride = 0;
  const std::int32_t* old_length = nullptr;  // [old hypotheses]
  const UnitSlots* units = nullptr;          // [units]
  const std::int32_t* block = nullptr;       // [units, block_stride]; null: the cache has no slots
  std::int64_t block_stride = 0;
  std::int64_t block_slots = 1;
  std::int32_t* slot = nullptr;  // [hypotheses, stride] the new slot table
  std::int64_t stride = 0;
  std::int32_t* length = nullptr;  // [hypotheses] tokens so far, including the new ones
  // One row per new token; rows past the count become zero.
  std::int32_t* row_hypothesis = nullptr;     // [capacity]
  std::int32_t* row_position = nullptr;       // [capacity] position in the hypothesis
  std::int32_t* row_keys = nullptr;           // [capacity] keys that the row sees: position + 1
  std::int32_t* row_slot = nullptr;           // [capacity]
  std::int32_t* row_memory_begin = nullptr;   // [capacity] memory_begin of the row's unit
  std::int32_t* row_memory_length = nullptr;  // [capacity] memory_length of the row's unit
  std::int32_t* last_row = nullptr;           // [hypotheses] row of the newest token
  std::int32_t* count = nullptr;              // [2] number of rows, number of hypotheses

  constexpr std::int64_t hypothesis_count() const {
    return active != nullptr ? *active * hypotheses_per_unit : hypotheses;
  }
  // The slot of the token at `position` of hypothesis h, whose unit has this index and prompt.
  constexpr std::int32_t slot_of(std::int64_t unit_index, std::int64_t prompt, std::int64_t h,
                                 std::int64_t position) const {
    if (block == nullptr) return 0;
    const std::int64_t n = position < prompt ? position
                                             : prompt + (position - prompt) * hypotheses_per_unit +
                                                   h % hypotheses_per_unit;
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
