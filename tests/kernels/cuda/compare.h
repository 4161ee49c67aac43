// Compares a job on the GPU with the same job on the CPU.
//
// A job is a function of a context and an element type: it creates its inputs with input(), runs a
// kernel or an operation and returns the result. The CPU always computes in f32 and is the
// reference. Inputs are representable in bf16, so that both devices start from the same numbers.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "nunchi/device/cuda/context.h"
#include "nunchi/tensor/dispatch.h"
#include "tests/support.h"

namespace nunchi::testing {

#define SKIP_WITHOUT_GPU() \
  if (cuda_device_count() == 0) GTEST_SKIP() << "this machine has no GPU"

// Random numbers that are representable in bf16, as a tensor of `dtype`.
inline Tensor input(ContextBase& context, DType dtype, const Shape& shape, std::uint64_t seed,
                    double scale = 1) {
  const Tensor exact = random_tensor<float>(context, shape, seed, scale);
  const Tensor rounded = Tensor::empty(context, DType::bf16, shape);
  convert(exact, rounded);
  if (dtype == DType::bf16) return rounded;
  convert(rounded, exact);
  return exact;
}

// A buffer for results: elements that are not written stay NaN.
inline Tensor unwritten_tensor(ContextBase& context, DType dtype, const Shape& shape) {
  const Tensor memory = Tensor::empty(context, dtype, shape);
  fill(memory, NAN);
  return memory;
}

struct Output {
  std::string name;
  std::vector<double> values;
};
inline Output output(std::string name, const Tensor& tensor) {
  if (tensor.dtype() != DType::i32) return {std::move(name), to_host_f64(tensor)};
  const std::vector<std::int32_t> values = to_host<std::int32_t>(tensor);
  return {std::move(name), {values.begin(), values.end()}};
}
using Job = std::function<std::vector<Output>(ContextBase& context, DType dtype)>;

// ‖a − b‖ / ‖b‖, or ‖a − b‖ if b is zero. NaN stays NaN.
inline double relative_distance(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(norm > 0 ? difference / norm : difference);
}

struct Tolerance {
  double f32 = 2e-6;
  double bf16 = 1e-2;
};

// Runs the job on the CPU in f32 and on the GPU in each of `types`, and compares the outputs.
inline void expect_like_cpu(const Job& job, const Tolerance& tolerance = {},
                            const std::vector<DType>& types = {DType::f32, DType::bf16}) {
  CpuContext cpu({.threads = 2});
  CudaContext cuda;
  cuda.arena().poison();
  const RandomKey key{.seed = 5, .step = 9};
  cpu.set_random_key(key);
  cuda.set_random_key(key);
  const std::vector<Output> expected = job(cpu, DType::f32);
  for (const DType type : types) {
    const std::vector<Output> found = job(cuda, type);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_LE(relative_distance(found[i].values, expected[i].values),
                type == DType::f32 ? tolerance.f32 : tolerance.bf16)
          << found[i].name << " in " << name_of(type);
    }
  }
}

}  // namespace nunchi::testing
