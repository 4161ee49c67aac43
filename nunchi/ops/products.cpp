#include "nunchi/ops/products.h"

#include "nunchi/kernels/gelu_product.h"
#include "nunchi/kernels/linear_gradient.h"
#include "nunchi/kernels/reduce.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

// Packs `matrix` [K, N], or [N, K] if transposed, into the product library's layout. Runs on
// `context`, but allocates on the matrix's own context, since other contexts may read the result
// too. Returns an undefined tensor if products should read the matrix itself.
Tensor pack(ContextBase& context, const Tensor& matrix, bool transposed) {
  Tensor packed;
  dispatch(context, matrix.dtype(), [&]<class T>(auto& ctx) {
    kernels::PackMatrix<T> kernel{.n = matrix.size(transposed ? 0 : 1),
                                  .k = matrix.size(transposed ? 1 : 0),
                                  .b = matrix.data<T>(),
                                  .transpose_b = transposed};
    if constexpr (kernels::kPacks<std::remove_cvref_t<decltype(ctx)>>) {
      const std::int64_t elements = kernels::packed_elements(ctx, kernel);
      if (elements == 0) return;
      packed = Tensor::empty(matrix.context(), matrix.dtype(), {elements});
      kernel.packed = packed.data<T>();
      kernels::run(ctx, kernel);
    }
  });
  return packed;
}

bool device_packs(ContextBase& context) {
  return on_device(context,
                   [](auto& ctx) { return kernels::kPacks<std::remove_cvref_t<decltype(ctx)>>; });
}

void add_column_sum(const Tensor& d_y, const Tensor& d_bias) {
  dispatch(d_y, [&]<class T>(auto& ctx) {
    kernels::run(ctx, kernels::ColumnSum<T>{.rows = d_y.size(0),
                                            .width = d_y.size(1),
                                            .x = d_y.data<T>(),
                                            .out = d_bias.data<Accumulator<T>>()});
  });
}

}  // namespace

ProductWeight forward_weight(ContextBase& context, const Variable& weight) {
  const Tensor& plain = weight.value();
  WeightForms* const forms = weight.forms();
  if (forms != nullptr && forms->int8().values.defined()) {
    return {.plain = plain,
            .form = WeightForm::int8,
            .formed = forms->int8().values,
            .scales = forms->int8().scales,
            .transposed = true};
  }
  if (!device_packs(context)) return {.plain = plain, .transposed = true};
  const auto make = [&] { return FormedWeight{.values = pack(context, plain, true)}; };
  const bool cached = forms != nullptr && !context.is_training();
  return {.plain = plain,
          .form = WeightForm::packed,
          .formed = (cached ? forms->get(WeightForm::packed, make) : make()).values,
          .transposed = true};
}

ProductWeight backward_weight(ContextBase& context, const Variable& weight) {
  return {.plain = weight.value(),
          .form = WeightForm::packed_transposed,
          .formed = pack(context, weight.value(), false)};
}

void multiply(const Tensor& x, const ProductWeight& weight, const Tensor& out,
              const ProductOptions& options) {
  dispatch(x, [&]<class T>(auto& ctx) {
    const auto run_product = [&]<class C>() {
      auto product = product_of<T, C>(weight, x, out);
      product.accumulate = options.accumulate;
      if (options.bias.defined()) product.bias = options.bias.data<T>();
      product.relu = options.relu;
      if (options.residual.defined()) product.residual = options.residual.data<T>();
      product.label = options.label;
      if constexpr (std::is_same_v<C, T>) {
        const std::int64_t bytes =
            options.mask != nullptr ? kernels::relu_mask_bytes(ctx, product) : 0;
        if (bytes > 0) {
          *options.mask = Tensor::empty(x.context(), DType::i8, {bytes});
          product.mask = reinterpret_cast<std::uint8_t*>(options.mask->data<std::int8_t>());
        }
      }
      kernels::run(ctx, product);
    };
    if (out.dtype() == x.dtype()) {
      run_product.template operator()<T>();
    } else {
      run_product.template operator()<Accumulator<T>>();
    }
  });
}

void multiply_gelu(const Tensor& x, const ProductWeight& weight, const Tensor& bias,
                   const Tensor& gelu_input, const Tensor& out) {
  dispatch(x, [&]<class T>(auto& ctx) {
    auto product = product_of<T>(weight, x, gelu_input);
    if (bias.defined()) product.bias = bias.data<T>();
    product.label = "linear";
    kernels::run(ctx, kernels::GeluProduct<T>{.product = product, .out = out.data<T>()});
  });
}

void multiply_gated(const Tensor& d_y, const ProductWeight& weight, const ActivationGate& gate,
                    const Tensor& d_x, const char* label) {
  dispatch(d_y, [&]<class T>(auto& ctx) {
    kernels::ActivationGradientProduct<T> kernel{
        .product = product_of<T>(weight, d_y, d_x), .kind = gate.kind, .y = gate.y.data<T>()};
    kernel.product.label = label;
    if (gate.mask.defined()) {
      kernel.mask = reinterpret_cast<const std::uint8_t*>(gate.mask.data<std::int8_t>());
    }
    if (gate.d_bias.defined()) kernel.d_bias = gate.d_bias.data<Accumulator<T>>();
    kernels::run(ctx, kernel);
  });
}

void add_weight_gradient(const Tensor& d_y, const Tensor& x, const Tensor& d_weight,
                         const Tensor& d_bias, const char* label) {
  // Packing x is worth its time only if many rows of d_weight read it.
  constexpr std::int64_t kMinRowsToPack = 1024;
  const Tensor packed = d_y.size(1) >= kMinRowsToPack ? pack(x.context(), x, false) : Tensor();
  dispatch(x, [&]<class T>(auto& ctx) {
    kernels::run(
        ctx, kernels::WeightGradient<T>{
                 .product = {.m = d_y.size(1),
                             .n = x.size(1),
                             .k = x.size(0),
                             .a = d_y.data<T>(),
                             .transpose_a = true,
                             .b = x.data<T>(),
                             .formed_b = {.form = WeightForm::packed,
                                          .data = packed.defined() ? packed.data<T>() : nullptr},
                             .c = d_weight.data<Accumulator<T>>(),
                             .accumulate = true,
                             .label = label},
                 .d_bias = d_bias.defined() ? d_bias.data<Accumulator<T>>() : nullptr});
  });
}

void add_linear_gradients(Gradients& gradients, int weight, const Tensor& d_y, const Tensor& x) {
  const int bias = weight + 1;
  const Tensor d_bias = gradients.wanted(bias) ? gradients.sum(bias) : Tensor();
  if (gradients.wanted(weight)) {
    add_weight_gradient(d_y, x, gradients.sum(weight), d_bias, "linear_backward_weight");
  } else if (d_bias.defined()) {
    add_column_sum(d_y, d_bias);
  }
}

}  // namespace nunchi
