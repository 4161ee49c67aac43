// Products of tensors with a weight, packed on the way: what linear layers and the vocabulary
// share.
#pragma once

#include "nunchi/autograd/variable.h"

namespace nunchi {

// A weight in the product library's own layout, and what is needed to use it.
struct PackedWeight {
  Tensor plain;   // [N, K]
  Tensor packed;  // undefined where packing gains nothing
  bool transposed = false;
};

// For x · Wᵀ. While nobody records, the packed form is kept with the weight until its version
// changes; in training each step changes it, so it lives only as long as the result.
PackedWeight pack_for_forward(const Variable& weight);
// For d · W.
PackedWeight pack_for_backward(const Variable& weight);

struct ProductOptions {
  Tensor bias;  // [N]; may be undefined
  bool relu = false;
  bool accumulate = false;
  const char* label = "product";
};

// out [R, N] = x [R, K] · Wᵀ, or with a weight packed for the way back: [R, K] = x [R, N] · W. out
// has x's type, or the one that x's is summed in.
void multiply(const Tensor& x, const PackedWeight& weight, const Tensor& out,
              const ProductOptions& options);

// d_weight [N, K] += d_y [R, N]ᵀ · x [R, K]
void add_outer(const Tensor& d_y, const Tensor& x, const Tensor& d_weight, const char* label);

// d_bias [N] += the sum of d_y's rows
void add_column_sum(const Tensor& d_y, const Tensor& d_bias);

}  // namespace nunchi
