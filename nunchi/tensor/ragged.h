// Which rows of a batch belong to which sentence. There is no padding between sentences.
#pragma once

#include <cstdint>
#include <vector>

#include "nunchi/tensor/tensor.h"

namespace nunchi {

// Sentences one after another: sentence b has rows offsets[b] to offsets[b + 1] - 1. The tensors
// are i32 on the context's device; the other members are for the host. Made by make_ragged (ops).
struct Ragged {
  std::int64_t sentences = 0;         // B
  std::int64_t rows = 0;              // real rows, without the padding up to the capacity
  std::int64_t capacity = 0;          // rows of the batch's matrices: the real rows, then padding
  std::int64_t max_length = 0;        // length of the longest sentence
  std::vector<std::int32_t> lengths;  // [B]

  Tensor offsets;         // [B + 1]
  Tensor begin;           // [B] the first row of each sentence: a view of offsets
  Tensor length;          // [B]
  Tensor count;           // [1] the number of real rows: a view of offsets
  Tensor sentence_index;  // [B] index in the global batch, for random draws
  Tensor row_sentence;    // [capacity] the sentence_index of each row's sentence
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
