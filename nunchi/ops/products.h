// Products of tensors with a weight, packed on the way: what linear layers and the vocabulary
// share.
#pragma once

#include "nunchi/autograd/tape.h"
#include "nunchi/autograd/variable.h"
#include "nunchi/kernels/activation.h"

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
  Tensor added;  // [R, N], to the result; not with relu; may be undefined
  // Where to leave what passed relu, if the device keeps that for the way back; null: nobody goes.
  Tensor* mask = nullptr;
  bool accumulate = false;
  const char* label = "product";
};

// out [R, N] = x [R, K] · Wᵀ, or with a weight packed for the way back: [R, K] = x [R, N] · W. out
// has x's type, or the one that x's is summed in.
void multiply(const Tensor& x, const PackedWeight& weight, const Tensor& out,
              const ProductOptions& options);

// x [R, N] = rows [R, K] · Wᵀ + bias, which may be undefined, and out = gelu_tanh(x). They may be
// one tensor.
void multiply_gelu(const Tensor& rows, const PackedWeight& weight, const Tensor& bias,
                   const Tensor& x, const Tensor& out);

// An activation that the way back goes through, relu or gelu_tanh, and the bias before it.
struct ActivationGate {
  kernels::ActivationKind kind = kernels::ActivationKind::relu;
  Tensor y;       // [R, N] relu's output, gelu's argument
  Tensor mask;    // what relu's product left; may be undefined
  Tensor d_bias;  // [N], added to; undefined: nobody wants it
};

// d_x [R, N] = d_y · W times the activation's derivative.
void multiply_gated(const Tensor& d_y, const PackedWeight& weight, const ActivationGate& gate,
                    const Tensor& d_x, const char* label);

// d_weight [N, K] += d_y [R, N]ᵀ · x [R, K], and d_bias [N], where defined, the sum of d_y's rows.
void add_outer(const Tensor& d_y, const Tensor& x, const Tensor& d_weight, const Tensor& d_bias,
               const char* label);

// Adds to the gradients of a weight, input number `weight` of an operation, and of the bias that is
// its next: those that are wanted.
void add_linear_gradients(Gradients& d, int weight, const Tensor& d_y, const Tensor& x);

}  // namespace nunchi
