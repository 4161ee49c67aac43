// Sinusoidal positions: near and far ones, the period of a dimension, distance by offset.
#pragma once

#include "nunchi/lab/lab.h"

namespace nunchi::lab {

Lab positions_lab();

// The rows that the library adds to embeddings: [count, width].
std::vector<double> sinusoidal_rows(ContextBase& context, std::int64_t count, std::int64_t width);
// The Euclidean distance of two rows of `width` values.
double row_distance(const std::vector<double>& rows, std::int64_t width, std::int64_t a,
                    std::int64_t b);

}  // namespace nunchi::lab
