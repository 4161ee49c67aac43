// The forms in which products read a weight W [N, K].
#pragma once

#include <cstdint>

namespace nunchi {

enum class WeightForm : std::uint8_t {
  plain,              // row-major, as the parameters hold it
  packed,             // in the product library's layout, for x · Wᵀ
  packed_transposed,  // in the product library's layout, for x · W
};
inline constexpr int kWeightForms = 3;

}  // namespace nunchi
