// Rotary position embedding, one pair of columns (a complex number) at a time.
#pragma once

#include <complex>
#include <vector>

#include "nunchi/kernels/rotary.h"

namespace nunchi::reference {

// The cosines and sines of all pairs and positions, in the table's layout.
inline std::vector<double> rotary_table(std::int64_t positions, std::int64_t width, double base) {
  std::vector<double> table;
  for (std::int64_t p = 0; p < positions; ++p) {
    std::vector<double> sines;
    for (std::int64_t i = 0; i < width / 2; ++i) {
      const double angle = static_cast<double>(p) / std::pow(base, 2.0 * static_cast<double>(i) /
                                                                       static_cast<double>(width));
      table.push_back(std::cos(angle));
      sines.push_back(std::sin(angle));
    }
    table.insert(table.end(), sines.begin(), sines.end());
  }
  return table;
}

// The rotated heads of the first `rows` rows, [rows, heads * D].
template <class T>
std::vector<double> rotary(const kernels::Rotary<T>& p, std::int64_t rows) {
  const std::int64_t half = p.head_width / 2;
  std::vector<double> out;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto* rotations = p.table + p.rows.position[r] * p.head_width;
    for (int h = 0; h < p.heads; ++h) {
      const T* x = p.x + r * p.x_stride + h * p.head_width;
      std::vector<double> imaginary;
      for (std::int64_t i = 0; i < half; ++i) {
        const std::complex<double> pair(x[i], x[half + i]),
            rotation(rotations[i], rotations[half + i]);
        const std::complex<double> rotated = pair * (p.inverse ? std::conj(rotation) : rotation);
        out.push_back(rotated.real());
        imaginary.push_back(rotated.imag());
      }
      out.insert(out.end(), imaginary.begin(), imaginary.end());
    }
  }
  return out;
}

}  // namespace nunchi::reference
