// A tensor: typed elements in a context's memory, row-major, the last dimension contiguous.
//
// A Tensor is a handle: copies share the storage, which returns to the arena with the last copy.
// Only kernels read and write the elements; all other code just passes pointers to them.
#pragma once

#include <memory>

#include "nunchi/device/context.h"
#include "nunchi/tensor/dtype.h"
#include "nunchi/tensor/shape.h"

namespace nunchi {

// The type that models on this context compute in.
inline DType compute_type(const ContextBase& context) {
  return context.precision() == Precision::bf16 ? DType::bf16 : DType::f32;
}

// One block of an arena, released in the destructor; or no memory at all.
class Storage {
 public:
  Storage(ContextBase& context, std::size_t bytes);
  explicit Storage(ContextBase& context) : context_(context), data_(nullptr) {}
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  ContextBase& context() const { return context_; }
  std::byte* data() const { return data_; }

 private:
  ContextBase& context_;
  std::byte* data_;
};

class Tensor {
 public:
  Tensor() = default;
  // Uninitialised.
  static Tensor empty(ContextBase& context, DType dtype, const Shape& shape);
  // Without memory: it has a shape, a type and a context, but no elements can be read. For weights
  // that exist only in another form.
  static Tensor without_memory(ContextBase& context, DType dtype, const Shape& shape);

  bool defined() const { return storage_ != nullptr; }
  bool has_memory() const { return defined() && storage_->data() != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t size(int dimension) const { return shape_[dimension]; }
  std::int64_t elements() const { return shape_.elements(); }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype_); }
  // Elements from one row of a matrix to the next; larger than the width in a view of columns.
  std::int64_t row_stride() const { return row_stride_; }
  bool contiguous() const;
  ContextBase& context() const { return storage_->context(); }
  // Whether no other tensor shares this one's storage.
  bool sole_owner() const { return storage_.use_count() == 1; }
  // Whether both share one storage.
  bool same_memory(const Tensor& other) const { return storage_ == other.storage_; }

  // A pointer to the first element. Throws Error if the elements are not of type T.
  template <class T>
  T* data() const {
    check_type(dtype_of<T>);
    return reinterpret_cast<T*>(storage_->data()) + offset_;
  }

  // The same for elements of any type.
  std::byte* bytes_begin() const {
    check_type(dtype_);
    return storage_->data() + static_cast<std::size_t>(offset_) * size_of(dtype_);
  }

  // Views, which share the storage.
  Tensor columns(std::int64_t begin, std::int64_t count) const;  // of a matrix [R, C]
  Tensor rows(std::int64_t begin, std::int64_t count) const;     // along the outermost dimension
  // The elements from `begin` on as a tensor of `shape`; this tensor must be contiguous.
  Tensor flat_slice(std::int64_t begin, const Shape& shape) const;

 private:
  void check_type(DType requested) const;

  std::shared_ptr<Storage> storage_;
  DType dtype_ = DType::f32;
  Shape shape_;
  std::int64_t offset_ = 0;  // in elements
  std::int64_t row_stride_ = 0;
};

}  // namespace nunchi
