// Products of activations with a weight: the one place that chooses the weight's form. Linear
// layers, norms fused with products, recurrence, the vocabulary loss and the search share it.
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
  Tensor formed;            // in that form; undefined: the device reads the plain weight
  bool transposed = false;  // x · Wᵀ, not x · W
};

// For x · Wᵀ with x on `context`. In evaluating mode the form is kept with the weight until its
// version changes; in training each step changes it, so it lives only as long as the result.
ProductWeight forward_weight(ContextBase& context, const Variable& weight);
// For d · W with d on `context`.
ProductWeight backward_weight(ContextBase& context, const Variable& weight);

// out [R, N] = x [R, K] · Wᵀ, or with a weight for the backward pass [R, K] = x [R, N] · W, without
// anything after it. x and out may be undefined: their pointers, and with x the rows, are then left
// to the caller.
template <class T, class C = T>
kernels::Product<T, C> product_of(const ProductWeight& weight, const Tensor& x, const Tensor& out) {
  return {.m = x.defined() ? x.size(0) : 0,
          .n = weight.plain.size(weight.transposed ? 0 : 1),
          .k = weight.plain.size(weight.transposed ? 1 : 0),
          .a = x.defined() ? x.data<T>() : nullptr,
          .b = weight.plain.data<T>(),
          .transpose_b = weight.transposed,
          .formed_b = {.form = weight.form,
                       .data = weight.formed.defined() ? weight.formed.data<T>() : nullptr},
          .c = out.defined() ? out.data<C>() : nullptr};
}

struct ProductOptions {
  Tensor bias;  // [N]; may be undefined
  bool relu = false;
  Tensor added;  // [R, N], to the result; not with relu; may be undefined
  // Where to leave relu's mask for the backward pass, if the device has one; null: it is not
  // needed.
  Tensor* mask = nullptr;
  bool accumulate = false;
  const char* label = "product";
};

// Runs product_of(weight, x, out). out has x's type or the type of its accumulator.
void multiply(const Tensor& x, const ProductWeight& weight, const Tensor& out,
              const ProductOptions& options);

// x [R, N] = rows [R, K] · Wᵀ + bias, which may be undefined, and out = gelu_tanh(x). x and out may
// be one tensor.
void multiply_gelu(const Tensor& rows, const ProductWeight& weight, const Tensor& bias,
                   const Tensor& x, const Tensor& out);

// An activation in the backward pass, relu or gelu_tanh, and the bias before it.
struct ActivationGate {
  kernels::ActivationKind kind = kernels::ActivationKind::relu;
  Tensor y;       // [R, N] relu's output, gelu's argument
  Tensor mask;    // of relu, from its product; may be undefined
  Tensor d_bias;  // [N], added to; undefined: not wanted
};

// d_x [R, N] = d_y · W times the activation's derivative.
void multiply_gated(const Tensor& d_y, const ProductWeight& weight, const ActivationGate& gate,
                    const Tensor& d_x, const char* label);

// d_weight [N, K] += d_y [R, N]ᵀ · x [R, K], and d_bias [N], where defined, the sum of d_y's rows.
void add_outer(const Tensor& d_y, const Tensor& x, const Tensor& d_weight, const Tensor& d_bias,
               const char* label);

// Adds to the gradients of a weight, input number `weight` of an operation, and of its bias, the
// input after it, where they are wanted.
void add_linear_gradients(Gradients& d, int weight, const Tensor& d_y, const Tensor& x);

}  // namespace nunchi
