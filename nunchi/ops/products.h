// Products of activations with a weight. Only this code chooses the weight's form: linear layers,
// norms fused with products, recurrence, the vocabulary loss and the search share it.
#pragma once

#include "nunchi/autograd/tape.h"
#include "nunchi/autograd/variable.h"
#include "nunchi/kernels/activation.h"
#include "nunchi/kernels/product.h"

namespace nunchi {

// A weight as a product reads it.
struct ProductWeight {
  Tensor plain;  // [N, K]
  WeightForm form = WeightForm::plain;
  Tensor formed;            // the weight in that form; undefined: the device reads the plain weight
  Tensor scales;            // of the form int8
  bool transposed = false;  // true: x · Wᵀ; false: x · W
};

// For x · Wᵀ with x on `context`. In evaluating mode the form is cached with the weight until its
// version changes; in training mode, where each step changes the weight, only the result owns it.
ProductWeight forward_weight(ContextBase& context, const Variable& weight);
// For d · W with d on `context`.
ProductWeight backward_weight(ContextBase& context, const Variable& weight);

// The product out [R, N] = x [R, K] · Wᵀ, or out [R, K] = x [R, N] · W with a backward weight,
// without bias and activation. If x or out is undefined, the caller sets its pointer, and m for x.
template <class T, class C = T>
kernels::Product<T, C> product_of(const ProductWeight& weight, const Tensor& x, const Tensor& out) {
  return {.m = x.defined() ? x.size(0) : 0,
          .n = weight.plain.size(weight.transposed ? 0 : 1),
          .k = weight.plain.size(weight.transposed ? 1 : 0),
          .a = x.defined() ? x.data<T>() : nullptr,
          .b = weight.plain.has_memory() ? weight.plain.data<T>() : nullptr,
          .transpose_b = weight.transposed,
          .formed_b = {.form = weight.form,
                       .data = weight.formed.defined() ? weight.formed.bytes_begin() : nullptr,
                       .scales = weight.scales.defined() ? weight.scales.data<float>() : nullptr},
          .c = out.defined() ? out.data<C>() : nullptr};
}

struct ProductOptions {
  Tensor bias;  // [N]; may be undefined
  bool relu = false;
  Tensor residual;  // [R, N], added to the result; not with relu; may be undefined
  // Receives relu's mask for the backward pass, if the device computes one; null: not needed.
  Tensor* mask = nullptr;
  bool accumulate = false;
  const char* label = "product";
};

// Runs product_of(weight, x, out). out has x's type or the type of its accumulator.
void multiply(const Tensor& x, const ProductWeight& weight, const Tensor& out,
              const ProductOptions& options);

// gelu_input [R, N] = x [R, K] · Wᵀ + bias, which may be undefined; out = gelu_tanh(gelu_input).
// gelu_input and out may be the same tensor.
void multiply_gelu(const Tensor& x, const ProductWeight& weight, const Tensor& bias,
                   const Tensor& gelu_input, const Tensor& out);

// The backward pass of an activation, relu or gelu_tanh, and of the bias before it.
struct ActivationGate {
  kernels::ActivationKind kind = kernels::ActivationKind::relu;
  Tensor y;       // [R, N] relu's output or gelu's input
  Tensor mask;    // relu's mask from the forward product; may be undefined
  Tensor d_bias;  // [N], added to; undefined: not wanted
};

// d_x [R, N] = d_y · W times the activation's derivative.
void multiply_gated(const Tensor& d_y, const ProductWeight& weight, const ActivationGate& gate,
                    const Tensor& d_x, const char* label);

// d_weight [N, K] += d_y [R, N]ᵀ · x [R, K]; d_bias [N], if defined, += the sum of d_y's rows.
void add_weight_gradient(const Tensor& d_y, const Tensor& x, const Tensor& d_weight,
                         const Tensor& d_bias, const char* label);

// Adds to the gradients of a layer's weight and bias that are wanted: inputs number `weight` and
// `weight` + 1 of the operation.
void add_linear_gradients(Gradients& gradients, int weight, const Tensor& d_y, const Tensor& x);

}  // namespace nunchi
