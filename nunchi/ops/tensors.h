// Copies between host and device, conversions and other helpers on tensors. Nothing here is
// recorded.
#pragma once

#include <span>
#include <vector>

#include "nunchi/kernels/rows.h"
#include "nunchi/tensor/ragged.h"
#include "nunchi/tensor/tensor.h"

namespace nunchi {

Tensor zeros(ContextBase& context, DType dtype, const Shape& shape);
void fill(const Tensor& tensor, double value);

// Copies values from the host into a new tensor of their type.
template <class T>
Tensor from_host(ContextBase& context, std::span<const T> values, const Shape& shape);
template <class T>
Tensor from_host(ContextBase& context, const std::vector<T>& values, const Shape& shape) {
  return from_host(context, std::span<const T>(values), shape);
}
template <class T>
void copy_from_host(std::span<const T> values, const Tensor& to);

// A copy of the tensor's elements, in order. Throws Error if the tensor has another type.
template <class T>
std::vector<T> to_host(const Tensor& tensor);
// The same for any floating-point type, converted to f64.
std::vector<double> to_host_f64(const Tensor& tensor);

// Converts between f32, f64 and bf16. The tensors must be contiguous and of equal size.
void convert(const Tensor& from, const Tensor& to);

// A batch of sentences of these lengths. Their indices in random draws are `indices`, or 0, 1, … if
// that is empty. Throws Error for more rows than an i32 can count.
Ragged make_ragged(ContextBase& context, std::span<const std::int32_t> lengths,
                   std::span<const std::int32_t> indices = {});

// The batch's rows as an argument of kernels.
kernels::Rows rows_of(const Ragged& batch);

}  // namespace nunchi
