#include "nunchi/training/optimizer.h"

#include "nunchi/base/error.h"
#include "nunchi/kernels/memory.h"
#include "nunchi/kernels/reduce.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

using kernels::AdamReport;
using kernels::AdamSettings;

// Device memory for one S.
template <class S>
Tensor memory_for(ContextBase& context) {
  return Tensor::empty(context, DType::i8, {static_cast<std::int64_t>(sizeof(S))});
}

template <class S>
S* as(const Tensor& tensor) {
  return reinterpret_cast<S*>(tensor.data<std::int8_t>());
}

}  // namespace

AdamOptimizer::AdamOptimizer(nn::Parameters& parameters, const AdamOptions& options)
    : parameters_(parameters), options_(options) {
  if (!parameters.gradients().defined())
    throw Error("the optimiser needs parameters with gradients.");
  const Tensor& weights = parameters.weights();
  ContextBase& context = weights.context();
  first_ = zeros(context, weights.dtype(), weights.shape());
  second_ = zeros(context, weights.dtype(), weights.shape());
  numbers_ = memory_for<AdamSettings>(context);
  report_ = memory_for<AdamReport>(context);
  squared_norm_ = zeros(context, DType::f64, {1});
}

void AdamOptimizer::step(const Step& step) {
  if (!(step.tokens > 0)) throw Error("a step needs at least one target token.");
  const Tensor &weights = parameters_.weights(), &gradients = parameters_.gradients();
  const AdamSettings numbers{.learning_rate = step.learning_rate,
                             .beta1 = options_.beta1,
                             .beta2 = options_.beta2,
                             .epsilon = options_.epsilon,
                             .weight_decay = options_.weight_decay,
                             .max_norm = options_.max_norm,
                             .tokens = step.tokens,
                             .step = ++steps_};
  dispatch(weights, [&]<class T>(auto& ctx) {
    if constexpr (std::is_same_v<T, Accumulator<T>>) {
      kernels::run(ctx, kernels::CopyBytes{.direction = kernels::CopyBytes::Direction::to_device,
                                           .bytes = sizeof numbers,
                                           .from = &numbers,
                                           .to = as<AdamSettings>(numbers_)});
      kernels::run(ctx, kernels::Sum<T>{.count = gradients.elements(),
                                        .squares = true,
                                        .x = gradients.data<T>(),
                                        .out = squared_norm_.data<double>()});
      kernels::run(ctx, kernels::ClipScale{
                            .settings = as<AdamSettings>(numbers_),
                            .loss_count = step.losses.defined() ? step.losses.elements() : 0,
                            .losses = step.losses.defined() ? step.losses.data<double>() : nullptr,
                            .squared_norm = squared_norm_.data<double>(),
                            .report = as<AdamReport>(report_)});
      kernels::run(ctx, kernels::Adam<T>{.count = weights.elements(),
                                         .decayed_count = parameters_.decayed(),
                                         .settings = as<AdamSettings>(numbers_),
                                         .report = as<AdamReport>(report_),
                                         .weights = weights.data<T>(),
                                         .gradients = gradients.data<T>(),
                                         .first_moment = first_.data<T>(),
                                         .second_moment = second_.data<T>(),
                                         .bf16_weights = parameters_.dtype() == DType::bf16
                                                             ? parameters_.values().data<BFloat16>()
                                                             : nullptr});
    }
  });
  parameters_.values_changed();
}

AdamReport AdamOptimizer::report() const {
  AdamReport report;
  on_device(report_.context(), [&](auto& ctx) {
    kernels::run(ctx, kernels::CopyBytes{.direction = kernels::CopyBytes::Direction::to_host,
                                         .bytes = sizeof report,
                                         .from = as<AdamReport>(report_),
                                         .to = &report});
  });
  return report;
}

}  // namespace nunchi
