#include "nunchi/ops/linear_sum.h"

#include "nunchi/ops/check.h"
#include "nunchi/ops/products.h"

namespace nunchi {
namespace {

// The operation's inputs.
enum Input : int { kFirst, kSecond, kFirstWeight, kBias, kSecondWeight };

void check_rows(const Variable& x, const Variable& weight) {
  check(x.value().size(1) == weight.value().size(1), "linear_sum",
        "rows " + x.value().shape().to_string() + " do not fit a weight " +
            weight.value().shape().to_string());
  check(x.value().contiguous(), "linear_sum", "rows must be contiguous");
}

}  // namespace

Variable linear_sum(const Variable& first, const Variable& second, const LinearSum& parameters) {
  const auto& [a, b, bias] = parameters;
  check_rows(first, a);
  check_rows(second, b);
  const std::int64_t rows = first.value().size(0), width = a.value().size(0);
  check_shape("linear_sum", "the second weight", b.value(), {width, second.value().size(1)});
  check_shape("linear_sum", "the second rows", second.value(), {rows, second.value().size(1)});
  check_shape("linear_sum", "bias", bias.value(), {width});
  ContextBase& context = first.value().context();
  const Tensor y = Tensor::empty(context, a.value().dtype(), {rows, width});
  multiply(first.value(), forward_weight(context, a), y, {.bias = bias.value(), .label = "linear"});
  multiply(second.value(), forward_weight(context, b), y, {.accumulate = true, .label = "linear"});
  return record(
      "linear_sum", y, {first, second, a, bias, b},
      [first = first.value(), second = second.value(), a = a, b = b](Gradients& gradients) {
        const Tensor& d_y = gradients.output();
        const auto give_input_gradient = [&](int input, const Variable& weight) {
          if (!gradients.wanted(input)) return;
          const GradientTarget d_x = gradients.target(input);
          multiply(d_y, backward_weight(d_y.context(), weight), d_x.tensor,
                   {.accumulate = d_x.accumulate, .label = "linear_backward_input"});
        };
        give_input_gradient(kFirst, a);
        give_input_gradient(kSecond, b);
        add_linear_gradients(gradients, kFirstWeight, d_y, first);
        if (gradients.wanted(kSecondWeight))
          add_weight_gradient(d_y, second, gradients.sum(kSecondWeight), {},
                              "linear_backward_weight");
      });
}

}  // namespace nunchi
