// The rows of a ragged batch, as kernels see them.
//
// A batch has room for `capacity` rows and a real count that lives with the data. Contract of every
// kernel: values in rows past the count are finite and mean nothing, gradients there are zero.
#pragma once

#include <cstdint>

namespace nunchi::kernels {

struct Rows {
  std::int64_t capacity = 0;
  const std::int32_t* count = nullptr;     // [1] in device memory; null: all of them are real
  const std::int32_t* sentence = nullptr;  // [capacity] index of the row's sentence, for draws
  const std::int32_t* position = nullptr;  // [capacity] the row's place in its sentence
};

}  // namespace nunchi::kernels
