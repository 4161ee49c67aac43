// From token ids to rows: table lookup, scale, position embedding and dropout in one pass.
#pragma once

#include <cstdint>

#include "nunchi/kernels/dropout.h"
#include "nunchi/kernels/product.h"
#include "nunchi/kernels/rows.h"
#include "nunchi/kernels/run.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

// out[t] = dropout(table[ids[t]] * scale + positions[rows.position[t]])
template <class T>
struct Embedding {
  Rows rows;
  std::int64_t width = 0;  // C
  double scale = 1;
  Dropout dropout;
  const std::int32_t* ids = nullptr;  // [T], each in [0, V)
  const T* table = nullptr;           // [V, C]; null if formed_table is set
  FormedMatrix formed_table;          // the table as int8; on the CPU, in f32, only
  const T* positions = nullptr;       // [P, C]; null: nothing is added
  T* out = nullptr;                   // [T, C]

  const char* name() const { return "embedding"; }
  Work work() const {
    return {.bytes = 2.0 * static_cast<double>(rows.capacity * width) * sizeof(T)};
  }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Embedding<T>& p);

// d_table[ids[t]] += scale * dropout(d_out[t]) and d_positions[position[t]] += dropout(d_out[t]),
// added in ascending row order.
template <class T>
struct EmbeddingBackward {
  Rows rows;
  std::int64_t width = 0;
  double scale = 1;
  Dropout dropout;
  const std::int32_t* ids = nullptr;      // [T]
  const T* d_out = nullptr;               // [T, C]
  Accumulator<T>* d_table = nullptr;      // [V, C]; may be null
  Accumulator<T>* d_positions = nullptr;  // [P, C]; may be null

  const char* name() const { return "embedding_backward"; }
  Work work() const {
    return {.bytes = 3.0 * static_cast<double>(rows.capacity * width) * sizeof(T)};
  }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const EmbeddingBackward<T>& p);

}  // namespace nunchi::kernels
