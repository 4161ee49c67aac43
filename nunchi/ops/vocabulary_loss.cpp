#include "nunchi/ops/vocabulary_loss.h"

#include <algorithm>

#include "nunchi/autograd/tape.h"
#include "nunchi/kernels/cross_entropy.h"
#include "nunchi/kernels/reduce.h"
#include "nunchi/ops/check.h"
#include "nunchi/ops/products.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

// The default rows per chunk. On the CPU the logits should fit its caches; a GPU is faster with
// large products.
std::int64_t default_chunk(const Tensor& hidden, std::int64_t vocabulary) {
  constexpr std::int64_t kCpuRows = 512, kGpuBytes = std::int64_t{2} << 30, kMultiple = 64;
  if (hidden.context().device() == Device::cpu) return kCpuRows;
  const auto row = vocabulary * static_cast<std::int64_t>(size_of(hidden.dtype()));
  return std::max(kGpuBytes / row / kMultiple, std::int64_t{1}) * kMultiple;
}

}  // namespace

VocabularyLoss vocabulary_loss(const Variable& hidden, const Linear& projection,
                               const Tensor& targets, const Ragged& batch,
                               const VocabularyLossOptions& options) {
  const Variable &weight = projection.weight, &bias = projection.bias;
  const Tensor &h = hidden.value(), &w = weight.value();
  check(h.shape().dimensions() == 2 && h.size(1) == w.size(1) && h.contiguous(), "vocabulary_loss",
        "rows " + h.shape().to_string() + " do not fit a table " + w.shape().to_string());
  check(!projection.relu, "vocabulary_loss", "the projection cannot have relu");
  if (bias.defined()) check_shape("vocabulary_loss", "bias", bias.value(), {w.size(0)});
  check_shape("vocabulary_loss", "targets", targets, {batch.capacity});
  check(options.smoothing >= 0 && options.smoothing < 1, "vocabulary_loss",
        "label smoothing must be at least 0 and below 1");
  check(options.chunk >= 0, "vocabulary_loss", "the number of rows per chunk must not be negative");
  const bool recorded = recording({hidden, weight, bias});
  for (const Variable& parameter : {weight, bias}) {
    check(!recorded || !parameter.needs_gradient() || parameter.gradient().defined(),
          "vocabulary_loss", "parameters need memory for their gradients before the backward pass");
  }

  ContextBase& context = h.context();
  const std::int64_t rows = batch.capacity, vocabulary = w.size(0);
  const std::int64_t chunk =
      std::min(options.chunk > 0 ? options.chunk : default_chunk(h, vocabulary), rows);
  const Tensor logits = Tensor::empty(context, h.dtype(), {chunk, vocabulary});
  const Tensor token_losses = Tensor::empty(context, accumulator_type(h.dtype()), {rows});
  const Tensor d_hidden = recorded ? Tensor::empty(context, h.dtype(), h.shape()) : Tensor();
  // Gradients of parameters exist before the backward pass and are added to.
  const auto gradient = [&](const Variable& parameter) {
    return recorded && parameter.needs_gradient() ? parameter.gradient() : Tensor();
  };
  const Tensor d_weight = gradient(weight), d_bias = gradient(bias);
  check(!d_bias.defined() || d_weight.defined(), "vocabulary_loss",
        "a bias that needs a gradient also needs a weight that needs one");
  const ProductWeight forward = forward_weight(context, weight);
  const ProductWeight backward = recorded ? backward_weight(context, weight) : ProductWeight();

  for (std::int64_t first = 0; first < rows; first += chunk) {
    const std::int64_t chunk_rows = std::min(chunk, rows - first);
    const Tensor scores = logits.rows(0, chunk_rows), chunk_hidden = h.rows(first, chunk_rows);
    multiply(chunk_hidden, forward, scores,
             {.bias = bias.defined() ? bias.value() : Tensor(), .label = "vocabulary"});
    dispatch(h, [&]<class T>(auto& ctx) {
      kernels::run(ctx,
                   kernels::CrossEntropy<T>{.rows = rows_of(batch),
                                            .first_row = first,
                                            .chunk_rows = chunk_rows,
                                            .vocabulary = vocabulary,
                                            .smoothing = options.smoothing,
                                            .write_gradient = recorded,
                                            .targets = targets.data<std::int32_t>() + first,
                                            .logits = scores.data<T>(),
                                            .loss = token_losses.data<Accumulator<T>>() + first});
    });
    if (!recorded) continue;
    multiply(scores, backward, d_hidden.rows(first, chunk_rows),
             {.label = "vocabulary_backward_input"});
    if (d_weight.defined())
      add_weight_gradient(scores, chunk_hidden, d_weight, d_bias, "vocabulary_backward_weight");
  }
  const Tensor total = Tensor::empty(context, DType::f64, {1});
  dispatch(token_losses, [&]<class T>(auto& ctx) {
    kernels::run(ctx, kernels::Sum<T>{
                          .count = rows, .x = token_losses.data<T>(), .out = total.data<double>()});
  });
  return {record("vocabulary_loss", total, {hidden, weight, bias},
                 [d_hidden](Gradients& gradients) {
                   if (gradients.wanted(0)) gradients.add(0, d_hidden);
                 }),
          token_losses};
}

}  // namespace nunchi
