// The rows of a ragged batch, as kernels see them.
//
// A batch has memory for `capacity` rows; the number of real rows is in device memory. Every kernel
// keeps this contract: in rows past the count, values are finite but meaningless, and gradients are
// zero.
#pragma once

#include <cstdint>

namespace nunchi::kernels {

struct Rows {
  std::int64_t capacity = 0;
  const std::int32_t* count = nullptr;  // [1] in device memory; null: all rows are real
  // [capacity] index of the row's sentence in the global batch, which selects its dropout mask.
  const std::int32_t* sentence = nullptr;
  const std::int32_t* position = nullptr;  // [capacity] the row's position in its sentence
};

}  // namespace nunchi::kernels
