// The forms in which matrix products read a weight W [N, K].
#pragma once

#include <cstdint>

namespace nunchi {

enum class WeightForm : std::uint8_t {
  plain,              // row-major, as in the parameters' buffer
  packed,             // in the GEMM library's layout, for x · Wᵀ
  packed_transposed,  // in the GEMM library's layout, for x · W
  int8,               // bytes with a scale per row, for x · Wᵀ (kernels/int8_product.h)
};
inline constexpr int kWeightForms = 4;

}  // namespace nunchi
