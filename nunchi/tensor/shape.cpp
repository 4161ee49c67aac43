#include "nunchi/tensor/shape.h"

#include "nunchi/base/error.h"

namespace nunchi {

Shape::Shape(std::initializer_list<std::int64_t> sizes)
    : Shape(std::span<const std::int64_t>(sizes.begin(), sizes.size())) {}

Shape::Shape(std::span<const std::int64_t> sizes) {
  if (sizes.size() > kMaxDimensions) {
    throw Error("a tensor has at most " + std::to_string(kMaxDimensions) + " dimensions, not " +
                std::to_string(sizes.size()) + ".");
  }
  for (const std::int64_t size : sizes) {
    if (size < 0)
      throw Error("a dimension of a tensor cannot have size " + std::to_string(size) + ".");
    sizes_[static_cast<std::size_t>(dimensions_++)] = size;
  }
}

std::int64_t Shape::elements() const {
  std::int64_t count = 1;
  for (int i = 0; i < dimensions_; ++i) count *= (*this)[i];
  return count;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int i = 0; i < dimensions_; ++i) text += (i ? ", " : "") + std::to_string((*this)[i]);
  return text + "]";
}

}  // namespace nunchi
