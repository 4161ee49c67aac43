#include "nunchi/training/moving_average.h"

#include <algorithm>

#include "nunchi/device/context.h"
#include "nunchi/kernels/memory.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

// The weights are averaged in chunks of kRows rows of kWidth elements, so that only a chunk needs
// scratch memory.
constexpr std::int64_t kWidth = 4096, kRows = 256;

void copy(const Tensor& from, const Tensor& to) {
  on_device(from.context(), [&](auto& ctx) {
    kernels::run(ctx, kernels::CopyBytes{.bytes = static_cast<std::size_t>(from.bytes()),
                                         .from = from.data<float>(),
                                         .to = to.data<float>()});
  });
}

}  // namespace

MovingAverage::MovingAverage(const nn::Parameters& parameters, double decay)
    : parameters_(parameters), decay_(decay) {
  const Tensor& weights = parameters.weights();
  ContextBase& context = weights.context();
  average_ = Tensor::empty(context, DType::f32, weights.shape());
  scratch_ = Tensor::empty(context, DType::f32,
                           {std::min<std::int64_t>(weights.elements(), kRows * kWidth)});
  reset();
}

void MovingAverage::reset() { copy(parameters_.weights(), average_); }

void MovingAverage::update(std::int64_t updates) {
  const auto n = static_cast<double>(updates);
  const double decay = std::min(decay_, (1 + n) / (10 + n));
  const std::int64_t size = average_.elements();
  const float* weights = parameters_.weights().data<float>();
  auto* average = average_.data<float>();
  auto* scratch = scratch_.data<float>();
  on_device(average_.context(), [&](auto& ctx) {
    for (std::int64_t begin = 0; begin < size; begin += kRows * kWidth) {
      const std::int64_t count = std::min(size - begin, kRows * kWidth);
      kernels::run(ctx,
                   kernels::Scale<float>{
                       .count = count, .factor = 1 - decay, .x = weights + begin, .out = scratch});
      kernels::run(
          ctx, kernels::Scale<float>{
                   .count = count, .factor = decay, .x = average + begin, .out = average + begin});
      const auto add = [&](std::int64_t rows, std::int64_t width, std::int64_t offset) {
        if (rows == 0 || width == 0) return;
        kernels::run(ctx, kernels::AddInto<float>{.rows = rows,
                                                  .width = width,
                                                  .x = scratch + offset,
                                                  .x_stride = width,
                                                  .out = average + begin + offset,
                                                  .out_stride = width});
      };
      add(count / kWidth, kWidth, 0);
      add(1, count % kWidth, count / kWidth * kWidth);
    }
  });
}

void MovingAverage::copy_to(nn::Parameters& parameters) const {
  copy(average_, parameters.weights());
  parameters.changed();
}

}  // namespace nunchi
