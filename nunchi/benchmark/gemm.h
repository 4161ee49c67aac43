// The speed of f32 products at the shapes of a training step.
#pragma once

#include <string>
#include <vector>

#include "nunchi/benchmark/limits.h"

namespace nunchi::benchmark {

// Which of a linear layer's three products: y = x Wᵀ, d_x = d_y W (both with W packed) or
// d_W = d_yᵀ x, without a constant operand.
enum class ProductRole : std::uint8_t { forward, backward_input, backward_weight };

struct GemmShape {
  std::string name;
  ProductRole role = ProductRole::forward;
  std::int64_t m = 0, n = 0, k = 0;
};

struct GemmResult {
  GemmShape shape;
  double gflops = 0;
  double product_ms = 0;
  double pack_ms = 0;  // packing W once, as each training step does
};

// The products of the base model for a batch of `tokens`; those of the vocabulary in chunks of 512.
std::vector<GemmShape> base_model_shapes(std::int64_t tokens, std::int64_t vocabulary);
GemmResult measure_gemm(ContextBase& context, const GemmShape& shape);

}  // namespace nunchi::benchmark
