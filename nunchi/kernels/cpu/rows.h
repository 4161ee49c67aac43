// Rows of a ragged batch, on the CPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "nunchi/kernels/rows.h"

namespace nunchi::kernels {
namespace {

inline std::int64_t count_of(const Rows& rows) {
  return rows.count != nullptr ? std::min<std::int64_t>(*rows.count, rows.capacity) : rows.capacity;
}

// Sets the rows from the count to the capacity to zero.
template <class T>
void clear_tail(const Rows& rows, std::int64_t width, T* out) {
  const std::int64_t count = count_of(rows);
  std::memset(out + count * width, 0,
              static_cast<std::size_t>((rows.capacity - count) * width) * sizeof(T));
}

// Sentence and position of a row, for dropout. If the batch has none: sentence 0 and the row's
// index.
inline std::uint32_t sentence_of(const Rows& rows, std::int64_t row) {
  return rows.sentence != nullptr ? static_cast<std::uint32_t>(rows.sentence[row]) : 0;
}
inline std::uint32_t position_of(const Rows& rows, std::int64_t row) {
  return static_cast<std::uint32_t>(rows.position != nullptr ? rows.position[row] : row);
}

}  // namespace
}  // namespace nunchi::kernels
