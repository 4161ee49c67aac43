// Numbers with separators between groups of digits.
#pragma once

#include <cstdint>
#include <string>

namespace nunchi {

// 1234567 as "1,234,567".
inline std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::ptrdiff_t first = number < 0 ? 1 : 0;
  for (auto position = static_cast<std::ptrdiff_t>(digits.size()) - 3; position > first;
       position -= 3) {
    digits.insert(static_cast<std::size_t>(position), 1, ',');
  }
  return digits;
}

}  // namespace nunchi
