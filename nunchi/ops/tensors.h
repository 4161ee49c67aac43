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

// A copy of numbers on the host, in their own type.
template <class T>
Tensor from_host(ContextBase& context, std::span<const T> values, const Shape& shape);
template <class T>
Tensor from_host(ContextBase& context, const std::vector<T>& values, const Shape& shape) {
  return from_host(context, std::span<const T>(values), shape);
}
template <class T>
void copy_from_host(std::span<const T> values, const Tensor& to);

// A copy of the tensor's elements, in order. Throws Error when they have another type.
template <class T>
std::vector<T> to_host(const Tensor& tensor);
// The same as f64, from any floating type.
std::vector<double> to_host_f64(const Tensor& tensor);

// Between f32 and f64, f32 and bf16, and from bf16 to f64; contiguous tensors
// of equal size.
void convert(const Tensor& from, const Tensor& to);

// A batch of sentences of these lengths, numbered from 0 or as `indices` says (for random draws).
// Throws Error when they hold more rows than an i32 can count.
Ragged make_ragged(ContextBase& context, std::span<const std::int32_t> lengths,
                   std::span<const std::int32_t> indices = {});

// Rows as kernels see them.
kernels::Rows rows_of(const Ragged& batch);

}  // namespace nunchi
