// Copying and filling memory: between host and device, between types, and with random numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nunchi/base/random.h"
#include "nunchi/kernels/run.h"

namespace nunchi::kernels {

// out[r, i] = value
template <class T>
struct Fill {
  std::int64_t count = 0;  // elements per row
  T value{};
  T* out = nullptr;  // [rows, count]
  std::int64_t rows = 1;
  std::int64_t stride = 0;  // elements from one row to the next

  const char* name() const { return "fill"; }
  Work work() const { return {.bytes = static_cast<double>(rows * count) * sizeof(T)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Fill<T>& p);

// Copies bytes from the host to the device, from the device to the host, or within the device.
// When the call returns, `from` may be changed and, after a copy to the host, `to` may be read.
struct CopyBytes {
  enum class Direction : std::uint8_t { to_device, to_host, within };
  Direction direction = Direction::within;
  std::size_t bytes = 0;
  const void* from = nullptr;
  void* to = nullptr;

  static constexpr bool kIsaIndependent = true;
  const char* name() const { return "copy"; }
  Work work() const { return {.bytes = 2.0 * static_cast<double>(bytes)}; }
};

template <class Target>
void compute(ContextOf<Target>& ctx, const CopyBytes& p);

// to[i] = from[i] converted to another floating-point type, rounded to nearest even.
template <class From, class To>
struct Convert {
  std::int64_t count = 0;
  const From* from = nullptr;
  To* to = nullptr;

  const char* name() const { return "convert"; }
  Work work() const { return {.bytes = static_cast<double>(count) * (sizeof(From) + sizeof(To))}; }
};

template <class Target, class From, class To>
void compute(ContextOf<Target>& ctx, const Convert<From, To>& p);

// out[r, c] += x[r, c]
template <class T>
struct AddInto {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  const T* x = nullptr;  // [rows, width]
  std::int64_t x_stride = 0;
  T* out = nullptr;  // [rows, width]
  std::int64_t out_stride = 0;

  const char* name() const { return "add_into"; }
  Work work() const { return {.bytes = 3.0 * static_cast<double>(rows * width) * sizeof(T)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const AddInto<T>& p);

// out[i] = x[i] * factor; `out` may be `x`.
template <class T>
struct Scale {
  std::int64_t count = 0;
  double factor = 1;
  const T* x = nullptr;  // [count]
  T* out = nullptr;      // [count]

  const char* name() const { return "scale"; }
  Work work() const { return {.bytes = 2.0 * static_cast<double>(count) * sizeof(T)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Scale<T>& p);

// Random initial values. Element i is drawn with the counter (i, tensor_id), so it does not depend
// on the shape.
template <class T>
struct RandomFill {
  enum class Distribution : std::uint8_t { uniform, normal };
  Distribution distribution = Distribution::uniform;
  double scale = 1;  // uniform: range [-scale, scale); normal: standard deviation
  RandomKey key;
  std::uint32_t tensor_id = 0;  // the tensor's fixed number: different tensors draw independently
  std::int64_t count = 0;
  T* out = nullptr;  // [count]

  const char* name() const { return "random_fill"; }
  Work work() const { return {.bytes = static_cast<double>(count) * sizeof(T)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const RandomFill<T>& p);

}  // namespace nunchi::kernels
