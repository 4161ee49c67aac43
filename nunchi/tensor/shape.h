// The sizes of a tensor, outermost first.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace nunchi {

class Shape {
 public:
  static constexpr int kMaxDimensions = 4;

  Shape() = default;
  // Throws Error for more than four sizes or a negative one.
  Shape(std::initializer_list<std::int64_t> sizes);
  explicit Shape(std::span<const std::int64_t> sizes);

  int dimensions() const { return dimensions_; }
  std::int64_t operator[](int i) const { return sizes_[static_cast<std::size_t>(i)]; }
  // The product of the sizes; 1 for a shape without dimensions.
  std::int64_t elements() const;
  std::string to_string() const;  // "[3, 4]"
  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, kMaxDimensions> sizes_{};
  int dimensions_ = 0;
};

}  // namespace nunchi
