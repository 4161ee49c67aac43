// The speed of matrix products (GEMM) in the shapes of a training step.
#pragma once

#include <string>
#include <vector>

#include "nunchi/benchmark/limits.h"

namespace nunchi::benchmark {

// One of a linear layer's three matrix products: y = x Wᵀ, d_x = d_y W (both with W packed), or
// d_W = d_yᵀ x, in which no operand is constant.
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

// The matrix products of the base model for a batch of `tokens`. The vocabulary projection is
// computed for chunks of at most 512 tokens.
std::vector<GemmShape> base_model_shapes(std::int64_t tokens, std::int64_t vocabulary);
GemmResult measure_gemm(ContextBase& context, const GemmShape& shape);

}  // namespace nunchi::benchmark
