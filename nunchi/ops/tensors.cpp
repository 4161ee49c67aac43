#include "nunchi/ops/tensors.h"

#include <algorithm>
#include <limits>
#include <string>

#include "nunchi/base/error.h"
#include "nunchi/kernels/memory.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

using Direction = kernels::CopyBytes::Direction;

void copy_bytes(ContextBase& context, Direction direction, std::size_t bytes, const void* from,
                void* to) {
  on_device(context, [&](auto& ctx) {
    kernels::run(
        ctx, kernels::CopyBytes{.direction = direction, .bytes = bytes, .from = from, .to = to});
  });
}

template <class From, class To>
void convert_typed(const Tensor& from, const Tensor& to) {
  on_device(from.context(), [&](auto& ctx) {
    kernels::run(ctx,
                 kernels::Convert<From, To>{
                     .count = from.elements(), .from = from.data<From>(), .to = to.data<To>()});
  });
}

}  // namespace

Tensor zeros(ContextBase& context, DType dtype, const Shape& shape) {
  Tensor tensor = Tensor::empty(context, dtype, shape);
  fill(tensor, 0);
  return tensor;
}

void fill(const Tensor& tensor, double value) {
  const auto fill_typed = [&]<class T>(T element) {
    on_device(tensor.context(), [&](auto& ctx) {
      kernels::run(ctx, kernels::Fill<T>{
                            .count = tensor.elements(), .value = element, .out = tensor.data<T>()});
    });
  };
  switch (tensor.dtype()) {
    case DType::f32:
      return fill_typed(static_cast<float>(value));
    case DType::f64:
      return fill_typed(value);
    case DType::bf16:
      return fill_typed(BFloat16(static_cast<float>(value)));
    case DType::i32:
      return fill_typed(static_cast<std::int32_t>(value));
    default:
      throw Error(std::string("a tensor of ") + name_of(tensor.dtype()) + " cannot be filled.");
  }
}

template <class T>
Tensor from_host(ContextBase& context, std::span<const T> values, const Shape& shape) {
  Tensor tensor = Tensor::empty(context, dtype_of<T>, shape);
  copy_from_host(values, tensor);
  return tensor;
}

template <class T>
void copy_from_host(std::span<const T> values, const Tensor& to) {
  if (static_cast<std::int64_t>(values.size()) != to.elements() || !to.contiguous()) {
    throw Error(std::to_string(values.size()) + " numbers do not fill a tensor of shape " +
                to.shape().to_string() + ".");
  }
  copy_bytes(to.context(), Direction::to_device, to.bytes(), values.data(), to.data<T>());
}

template <class T>
std::vector<T> to_host(const Tensor& tensor) {
  std::vector<T> values(static_cast<std::size_t>(tensor.elements()));
  if (tensor.contiguous()) {
    copy_bytes(tensor.context(), Direction::to_host, tensor.bytes(), tensor.data<T>(),
               values.data());
    return values;
  }
  const auto width = static_cast<std::size_t>(tensor.size(1));
  for (std::int64_t r = 0; r < tensor.size(0); ++r) {
    copy_bytes(tensor.context(), Direction::to_host, width * sizeof(T),
               tensor.data<T>() + r * tensor.row_stride(),
               values.data() + static_cast<std::size_t>(r) * width);
  }
  return values;
}

std::vector<double> to_host_f64(const Tensor& tensor) {
  if (tensor.dtype() == DType::f64) return to_host<double>(tensor);
  if (tensor.dtype() == DType::f32) {
    const std::vector<float> values = to_host<float>(tensor);
    return {values.begin(), values.end()};
  }
  std::vector<double> values;
  for (const BFloat16 value : to_host<BFloat16>(tensor)) {
    values.push_back(static_cast<double>(static_cast<float>(value)));
  }
  return values;
}

void convert(const Tensor& from, const Tensor& to) {
  if (from.elements() != to.elements() || !from.contiguous() || !to.contiguous()) {
    throw Error("a tensor of shape " + from.shape().to_string() + " cannot be converted into " +
                to.shape().to_string() + ".");
  }
  if (from.dtype() == to.dtype() && from.dtype() == DType::f32) {
    return copy_bytes(from.context(), Direction::within, from.bytes(), from.data<float>(),
                      to.data<float>());
  }
  if (from.dtype() == to.dtype() && from.dtype() == DType::f64) {
    return copy_bytes(from.context(), Direction::within, from.bytes(), from.data<double>(),
                      to.data<double>());
  }
  if (from.dtype() == to.dtype() && from.dtype() == DType::bf16) {
    return copy_bytes(from.context(), Direction::within, from.bytes(), from.data<BFloat16>(),
                      to.data<BFloat16>());
  }
  const auto converts = [&](DType a, DType b) { return from.dtype() == a && to.dtype() == b; };
  if (converts(DType::f32, DType::f64)) return convert_typed<float, double>(from, to);
  if (converts(DType::f64, DType::f32)) return convert_typed<double, float>(from, to);
  if (converts(DType::f32, DType::bf16)) return convert_typed<float, BFloat16>(from, to);
  if (converts(DType::bf16, DType::f32)) return convert_typed<BFloat16, float>(from, to);
  if (converts(DType::bf16, DType::f64)) return convert_typed<BFloat16, double>(from, to);
  if (converts(DType::f64, DType::bf16)) return convert_typed<double, BFloat16>(from, to);
  throw Error(std::string("no conversion from ") + name_of(from.dtype()) + " to " +
              name_of(to.dtype()) + ".");
}

Ragged make_ragged(ContextBase& context, std::span<const std::int32_t> lengths,
                   std::span<const std::int32_t> indices) {
  if (!indices.empty() && indices.size() != lengths.size()) {
    throw Error("a batch of " + std::to_string(lengths.size()) + " sentences got " +
                std::to_string(indices.size()) + " indices.");
  }
  Ragged batch;
  batch.sentences = static_cast<std::int64_t>(lengths.size());
  batch.lengths.assign(lengths.begin(), lengths.end());
  std::int64_t rows = 0;
  for (const std::int32_t length : lengths) {
    if (length < 0) throw Error("a sentence cannot have " + std::to_string(length) + " tokens.");
    rows += length;
    batch.max_length = std::max<std::int64_t>(batch.max_length, length);
  }
  if (rows > std::numeric_limits<std::int32_t>::max() - 64) {
    throw Error("a batch of " + std::to_string(rows) + " tokens is too large.");
  }
  batch.rows = rows;
  batch.capacity = row_capacity(rows);

  // One upload: offsets [B + 1], length [B], sentence_index [B], row_sentence [capacity] and
  // row_position [capacity].
  const std::size_t sentences = lengths.size(), capacity = static_cast<std::size_t>(batch.capacity);
  std::vector<std::int32_t> packed(3 * sentences + 1 + 2 * capacity, 0);
  std::int32_t* offset = packed.data();
  std::int32_t* length = offset + sentences + 1;
  std::int32_t* index = length + sentences;
  std::int32_t* row_sentence = index + sentences;
  std::int32_t* row_position = row_sentence + capacity;
  for (std::size_t b = 0; b < sentences; ++b) {
    length[b] = lengths[b];
    index[b] = indices.empty() ? static_cast<std::int32_t>(b) : indices[b];
    offset[b + 1] = offset[b] + lengths[b];
    for (std::int32_t i = 0; i < lengths[b]; ++i) {
      row_sentence[offset[b] + i] = index[b];
      row_position[offset[b] + i] = i;
    }
  }
  const Tensor tensor = from_host(context, packed, {static_cast<std::int64_t>(packed.size())});
  const std::int64_t b = batch.sentences;
  batch.offsets = tensor.flat_slice(0, {b + 1});
  batch.begin = tensor.flat_slice(0, {b});
  batch.count = tensor.flat_slice(b, {1});
  batch.length = tensor.flat_slice(b + 1, {b});
  batch.sentence_index = tensor.flat_slice(2 * b + 1, {b});
  batch.row_sentence = tensor.flat_slice(3 * b + 1, {batch.capacity});
  batch.row_position = tensor.flat_slice(3 * b + 1 + batch.capacity, {batch.capacity});
  return batch;
}

kernels::Rows rows_of(const Ragged& batch) {
  return {.capacity = batch.capacity,
          .count = batch.count.data<std::int32_t>(),
          .sentence = batch.row_sentence.data<std::int32_t>(),
          .position = batch.row_position.data<std::int32_t>()};
}

template Tensor from_host(ContextBase&, std::span<const float>, const Shape&);
template Tensor from_host(ContextBase&, std::span<const double>, const Shape&);
template Tensor from_host(ContextBase&, std::span<const std::int32_t>, const Shape&);
template Tensor from_host(ContextBase&, std::span<const std::int64_t>, const Shape&);
template Tensor from_host(ContextBase&, std::span<const std::int8_t>, const Shape&);
template Tensor from_host(ContextBase&, std::span<const BFloat16>, const Shape&);
template void copy_from_host(std::span<const float>, const Tensor&);
template void copy_from_host(std::span<const double>, const Tensor&);
template void copy_from_host(std::span<const BFloat16>, const Tensor&);
template void copy_from_host(std::span<const std::int32_t>, const Tensor&);
template void copy_from_host(std::span<const std::int64_t>, const Tensor&);
template void copy_from_host(std::span<const std::int8_t>, const Tensor&);
template std::vector<float> to_host(const Tensor&);
template std::vector<double> to_host(const Tensor&);
template std::vector<std::int32_t> to_host(const Tensor&);
template std::vector<std::int8_t> to_host(const Tensor&);
template std::vector<BFloat16> to_host(const Tensor&);

}  // namespace nunchi
