// Which rows of a batch belong to which sentence. There is no padding between sentences.
#pragma once

#include <cstdint>
#include <vector>

#include "nunchi/tensor/tensor.h"

namespace nunchi {

// Sentences one after another: sentence b has rows offsets[b] to offsets[b + 1]. The tensors are
// i32 on the context's device, the other members copies for the host. Made by make_ragged (ops).
struct Ragged {
  std::int64_t sentences = 0;         // B
  std::int64_t rows = 0;              // real rows
  std::int64_t capacity = 0;          // rows of this batch's matrices, real ones first
  std::int64_t max_length = 0;        // of the longest sentence
  std::vector<std::int32_t> lengths;  // [B]

  Tensor offsets;         // [B + 1]
  Tensor begin;           // [B] the first B of offsets
  Tensor length;          // [B]
  Tensor count;           // [1] the last of offsets: the real number of rows
  Tensor sentence_index;  // [B] index in the global batch, for random draws
  Tensor row_sentence;    // [capacity] the same for each row
  Tensor row_position;    // [capacity] the row's position in its sentence
};

// The capacity for a number of rows: a few sizes, so that shapes repeat and plans are reused.
constexpr std::int64_t row_capacity(std::int64_t rows) {
  if (rows > 64) return (rows + 63) / 64 * 64;
  std::int64_t capacity = 1;
  while (capacity < rows) capacity *= 2;
  return capacity;
}

}  // namespace nunchi
