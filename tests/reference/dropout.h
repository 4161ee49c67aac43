// Dropout draws, one at a time, as kernels/dropout.h specifies them.
#pragma once

#include <algorithm>
#include <cmath>

#include "nunchi/kernels/dropout.h"
#include "nunchi/kernels/rows.h"

namespace nunchi::reference {

// The dropout factor of an element: 0 or 1 / (1 - p).
inline double dropout_factor(const kernels::Dropout& dropout, std::uint32_t sentence,
                             std::uint32_t row, std::uint32_t column) {
  const double threshold = std::round(static_cast<double>(dropout.probability) * 65536);
  if (threshold == 0) return 1;
  const philox::Words words =
      philox::bits({column / 8, row, sentence, dropout.operation_id}, philox::key_of(*dropout.key));
  const std::uint32_t word = words[column % 8 / 2];
  const std::uint32_t draw = column % 2 == 0 ? word & 0xFFFF : word >> 16;
  return draw < threshold ? 0 : 1 / (1 - threshold / 65536);
}

// The dropout factor of an element of a batch. A batch without positions is one sentence.
inline double dropout_factor(const kernels::Dropout& dropout, const kernels::Rows& rows,
                             std::int64_t row, std::int64_t column) {
  const std::int64_t sentence = rows.sentence != nullptr ? rows.sentence[row] : 0;
  const std::int64_t position = rows.position != nullptr ? rows.position[row] : row;
  return dropout_factor(dropout, static_cast<std::uint32_t>(sentence),
                        static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(column));
}

inline std::int64_t row_count(const kernels::Rows& rows) {
  return rows.count != nullptr ? *rows.count : rows.capacity;
}

}  // namespace nunchi::reference
