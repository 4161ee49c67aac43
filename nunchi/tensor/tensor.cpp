#include "nunchi/tensor/tensor.h"

#include <limits>
#include <string>

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

std::int64_t width_of(const Shape& shape) {
  return shape.dimensions() == 0 ? 1 : shape[shape.dimensions() - 1];
}

std::size_t checked_bytes(DType dtype, const Shape& shape) {
  std::size_t bytes = size_of(dtype);
  for (int i = 0; i < shape.dimensions(); ++i) {
    const auto size = static_cast<std::size_t>(shape[i]);
    if (size != 0 && bytes > std::numeric_limits<std::size_t>::max() / 2 / size) {
      throw Error("a tensor of shape " + shape.to_string() + " is too large for any memory.");
    }
    bytes *= size;
  }
  return bytes;
}

}  // namespace

Storage::Storage(ContextBase& context, std::size_t bytes)
    : context_(context), data_(context.arena().allocate(bytes)) {}
Storage::~Storage() {
  if (data_ != nullptr) context_.arena().release(data_);
}

Tensor Tensor::empty(ContextBase& context, DType dtype, const Shape& shape) {
  Tensor tensor;
  tensor.storage_ = std::make_shared<Storage>(context, checked_bytes(dtype, shape));
  tensor.dtype_ = dtype;
  tensor.shape_ = shape;
  tensor.row_stride_ = width_of(shape);
  return tensor;
}

Tensor Tensor::without_memory(ContextBase& context, DType dtype, const Shape& shape) {
  Tensor tensor;
  tensor.storage_ = std::make_shared<Storage>(context);
  tensor.dtype_ = dtype;
  tensor.shape_ = shape;
  tensor.row_stride_ = width_of(shape);
  return tensor;
}

bool Tensor::contiguous() const { return row_stride_ == width_of(shape_); }

Tensor Tensor::columns(std::int64_t begin, std::int64_t count) const {
  if (shape_.dimensions() != 2 || begin < 0 || count < 0 || begin + count > shape_[1]) {
    throw Error("columns " + std::to_string(begin) + " to " + std::to_string(begin + count) +
                " are not in a tensor of shape " + shape_.to_string() + ".");
  }
  Tensor view = *this;
  view.shape_ = {shape_[0], count};
  view.offset_ += begin;
  return view;
}

Tensor Tensor::rows(std::int64_t begin, std::int64_t count) const {
  if (shape_.dimensions() == 0 || begin < 0 || count < 0 || begin + count > shape_[0]) {
    throw Error("rows " + std::to_string(begin) + " to " + std::to_string(begin + count) +
                " are not in a tensor of shape " + shape_.to_string() + ".");
  }
  Tensor view = *this;
  std::array<std::int64_t, Shape::kMaxDimensions> sizes{};
  std::int64_t row_elements = shape_.dimensions() == 2 ? row_stride_ : 1;
  for (int i = 0; i < shape_.dimensions(); ++i) {
    sizes[static_cast<std::size_t>(i)] = i == 0 ? count : shape_[i];
    if (i > 0 && shape_.dimensions() > 2) row_elements *= shape_[i];
  }
  view.shape_ = Shape(std::span(sizes.data(), static_cast<std::size_t>(shape_.dimensions())));
  if (shape_.dimensions() == 1) view.row_stride_ = count;
  view.offset_ += begin * row_elements;
  return view;
}

Tensor Tensor::flat_slice(std::int64_t begin, const Shape& shape) const {
  if (!contiguous() || begin < 0 || begin + shape.elements() > elements()) {
    throw Error("a view of shape " + shape.to_string() + " from element " + std::to_string(begin) +
                " is not in a tensor of shape " + shape_.to_string() + ".");
  }
  Tensor view = *this;
  view.shape_ = shape;
  view.offset_ += begin;
  view.row_stride_ = width_of(shape);
  return view;
}

void Tensor::check_type(DType requested) const {
  if (storage_ == nullptr) throw Error("an empty tensor has no elements.");
  if (storage_->data() == nullptr) {
    throw Error("a weight of shape " + shape_.to_string() +
                " exists only as int8 and was read as " + name_of(requested) + ".");
  }
  if (requested != dtype_) {
    throw Error(std::string("a tensor of ") + name_of(dtype_) + " was used as " +
                name_of(requested) + ".");
  }
}

}  // namespace nunchi
