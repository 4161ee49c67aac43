#include "nunchi/training/learner.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "nunchi/autograd/tape.h"
#include "nunchi/base/error.h"
#include "nunchi/kernels/memory.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

// The index in the step of each micro-batch's first sentence.
std::vector<std::int32_t> first_sentences(std::span<const HostBatch> batches) {
  std::vector<std::int32_t> first;
  std::int32_t sentence = 0;
  for (const HostBatch& batch : batches) {
    first.push_back(sentence);
    sentence += static_cast<std::int32_t>(batch.pairs.size());
  }
  return first;
}

Tensor copy_of(const Tensor& tensor) {
  const Tensor copy = Tensor::empty(tensor.context(), tensor.dtype(), tensor.shape());
  dispatch(tensor, [&]<class T>(auto& ctx) {
    kernels::run(
        ctx, kernels::CopyBytes{.bytes = sizeof(T) * static_cast<std::size_t>(tensor.elements()),
                                .from = tensor.data<T>(),
                                .to = copy.data<T>()});
  });
  return copy;
}

// to += from. In rows, which threads share.
void add_into(const Tensor& from, const Tensor& to) {
  constexpr std::int64_t kWidth = 4096;
  const std::int64_t rows = to.elements() / kWidth, rest = to.elements() % kWidth;
  dispatch(to, [&]<class T>(auto& ctx) {
    if constexpr (std::is_same_v<T, Accumulator<T>>) {
      const auto add = [&](std::int64_t count, std::int64_t width, std::int64_t offset) {
        kernels::run(ctx, kernels::AddInto<T>{.rows = count,
                                              .width = width,
                                              .x = from.data<T>() + offset,
                                              .x_stride = width,
                                              .out = to.data<T>() + offset,
                                              .out_stride = width});
      };
      if (rows > 0) add(rows, kWidth, 0);
      if (rest > 0) add(1, rest, rows * kWidth);
    }
  });
}

}  // namespace

// What a worker accumulates from.
struct Learner::Share {
  std::span<const HostBatch> batches;   // of the whole step
  std::vector<std::int32_t> sentences;  // the index of each one's first sentence
};

Learner::Learner(Model& model, const Objective& objective, const LearnerOptions& options,
                 Communicator& communicator)
    : model_(model),
      objective_(objective),
      communicator_(communicator),
      sum_(options.sum),
      optimizer_(model.parameters(), options.adam) {}

LearnedStep Learner::step(std::span<const HostBatch> batches, const RandomKey& key,
                          double learning_rate) {
  StepSums sums = accumulate(batches, key);
  reduce(sums);
  return apply(sums, learning_rate);
}

StepSums Learner::accumulate(std::span<const HostBatch> batches, const RandomKey& key) {
  const auto workers = static_cast<std::size_t>(communicator_.size());
  check_shares(std::ssize(batches), sum_, communicator_.size());
  ContextBase& context = model_.parameters().weights().context();
  context.set_random(key);
  const ModeScope scope(context, Mode::training);
  const Shape shape{std::ssize(batches)};
  // Each micro-batch's loss is written by the worker that has it; the others add zeros to it.
  StepSums sums{.losses = workers == 1 ? Tensor::empty(context, DType::f64, shape)
                                       : zeros(context, DType::f64, shape)};
  const Share share{batches, first_sentences(batches)};
  const std::size_t count = batches.size() / workers;
  const std::size_t first = count * static_cast<std::size_t>(communicator_.rank());
  if (sum_ == GradientSum::tree) {
    add_tree(share, first, first + count, sums);
  } else {
    for (std::size_t i = first; i < first + count; ++i) add_gradients(share, i, sums);
  }
  return sums;
}

void Learner::add_gradients(const Share& share, std::size_t batch, StepSums& sums) {
  Tape tape(model_.parameters().weights().context());
  const ObjectiveLoss loss = objective_.loss(share.batches[batch], share.sentences[batch]);
  tape.backward(loss.total);
  convert(loss.total.value(), sums.losses.part(static_cast<std::int64_t>(batch), {1}));
  sums.tokens += loss.tokens;
  sums.read += loss.read > 0 ? loss.read : loss.tokens;
}

// The halves are summed each from zero, so that a subtree has the same bits on every worker.
void Learner::add_tree(const Share& share, std::size_t first, std::size_t end, StepSums& sums) {
  if (end - first == 1) return add_gradients(share, first, sums);
  const Tensor& gradients = model_.parameters().gradients();
  const std::size_t middle = first + (end - first) / 2;
  add_tree(share, first, middle, sums);
  const Tensor lower = copy_of(gradients);
  fill(gradients, 0);
  add_tree(share, middle, end, sums);
  add_into(lower, gradients);
}

void Learner::reduce(StepSums& sums) {
  if (communicator_.size() == 1) return;
  communicator_.all_reduce(model_.parameters().gradients());
  communicator_.all_reduce(sums.losses);
  sums.tokens = communicator_.sum(sums.tokens);
  sums.read = communicator_.sum(sums.read);
}

LearnedStep Learner::apply(const StepSums& sums, double learning_rate) {
  optimizer_.step({.learning_rate = learning_rate,
                   .tokens = static_cast<double>(sums.tokens),
                   .losses = sums.losses});
  // Only now does the host wait for the device.
  const kernels::AdamReport report = optimizer_.report();
  LearnedStep result{.tokens = sums.tokens, .read = sums.read, .finite = report.scale != 0};
  for (const double loss : to_host<double>(sums.losses)) result.loss += loss;
  result.gradient_norm = std::isfinite(result.loss) ? report.gradient_norm : NAN;
  // Adam corrects its moments for their number of updates, and this was none.
  if (!result.finite) optimizer_.set_steps(optimizer_.steps() - 1);
  return result;
}

std::string Learner::first_not_finite(std::span<const HostBatch> batches, const RandomKey& key) {
  ContextBase& context = model_.parameters().weights().context();
  context.set_random(key);
  const ModeScope scope(context, Mode::training);
  std::string found = "the results of all operations are finite, their sums are not";
  const std::vector<std::int32_t> sentences = first_sentences(batches);
  try {
    for (std::size_t i = 0; i < batches.size(); ++i) {
      Tape tape(context, {.check_finite = true});
      tape.backward(objective_.loss(batches[i], sentences[i]).total);
    }
  } catch (const NotFinite& error) {
    found = error.what();
  }
  fill(model_.parameters().gradients(), 0);
  return found;
}

void check_shares(std::int64_t micro_batches, GradientSum sum, int workers) {
  if (micro_batches % workers != 0) {
    throw Error(
        fmt::format("training.accumulate is {}, but {} workers need a multiple of {}: each takes "
                    "the same number of a step's micro-batches.",
                    micro_batches, workers, workers));
  }
  if (sum == GradientSum::tree && !std::has_single_bit(static_cast<unsigned>(workers))) {
    throw Error(
        fmt::format("training.gradient_sum: tree needs 1, 2, 4, 8, ... workers, not {}.", workers));
  }
}

}  // namespace nunchi
