#include "nunchi/training/learner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <new>

#include "nunchi/autograd/tape.h"
#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"
#include "nunchi/base/out_of_memory.h"
#include "nunchi/data/split_batch.h"
#include "nunchi/kernels/memory.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

// The index of each micro-batch's first sentence in the step.
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

// to += from, as a matrix whose rows are divided among the threads.
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

std::string without_full_stop(std::string text) {
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

// The micro-batches of a whole step.
struct Learner::StepBatches {
  std::span<const HostBatch> batches;
  std::vector<std::int32_t> first_sentences;  // index in the step of each batch's first sentence
};

// A part of a micro-batch that does not fit into memory.
struct Learner::TooLarge {
  std::string reason;
  std::int64_t rows = 0, sentences = 0;
  std::int64_t half_rows = 0;  // of the larger half; 0 for a single sentence
};

Learner::Learner(Model& model, const Objective& objective, const LearnerOptions& options,
                 Communicator& communicator)
    : model_(model),
      objective_(objective),
      communicator_(communicator),
      sum_(options.sum),
      note_(options.note),
      optimizer_(model.parameters(), options.adam) {}

StepReport Learner::step(std::span<const HostBatch> batches, const RandomKey& key,
                         double learning_rate) {
  StepSums sums = accumulate(batches, key);
  reduce(sums);
  return apply(sums, learning_rate);
}

StepSums Learner::accumulate(std::span<const HostBatch> batches, const RandomKey& key) {
  check_worker_count(std::ssize(batches), sum_, communicator_.size());
  ContextBase& context = model_.parameters().weights().context();
  context.set_random_key(key);
  const ModeScope scope(context, Mode::training);
  const StepBatches step{batches, first_sentences(batches)};
  while (true) {
    try {
      return try_to_accumulate(step);
    } catch (const TooLarge& failed) {
      compute_in_parts(failed);
    }
    fill(model_.parameters().gradients(), 0);
  }
}

StepSums Learner::try_to_accumulate(const StepBatches& step) {
  const auto workers = static_cast<std::size_t>(communicator_.size());
  ContextBase& context = model_.parameters().weights().context();
  const Shape shape{std::ssize(step.batches)};
  // Each worker writes the losses of its own micro-batches; the all-reduce adds zeros to them.
  StepSums sums{.losses = workers == 1 ? Tensor::empty(context, DType::f64, shape)
                                       : zeros(context, DType::f64, shape)};
  const std::size_t count = step.batches.size() / workers;
  const std::size_t first = count * static_cast<std::size_t>(communicator_.rank());
  if (sum_ == GradientSum::tree) {
    add_tree(step, first, first + count, sums);
  } else {
    for (std::size_t i = first; i < first + count; ++i) add_gradients(step, i, sums);
  }
  return sums;
}

void Learner::add_gradients(const StepBatches& step, std::size_t batch, StepSums& sums) {
  const HostBatch& whole = step.batches[batch];
  const Tensor loss = sums.losses.flat_slice(static_cast<std::int64_t>(batch), {1});
  if (max_rows_ == 0 || batch_rows(whole) <= max_rows_) {
    return add_part(whole, step.first_sentences[batch], loss, sums);
  }
  std::int32_t first_sentence = step.first_sentences[batch];
  Tensor part_loss = loss;
  for (const HostBatch& part : split_batch(whole, max_rows_)) {
    add_part(part, first_sentence, part_loss, sums);
    if (first_sentence > step.first_sentences[batch]) add_into(part_loss, loss);
    first_sentence += static_cast<std::int32_t>(part.pairs.size());
    part_loss = Tensor::empty(loss.context(), DType::f64, {1});
  }
}

void Learner::add_part(const HostBatch& part, std::int32_t first_sentence, const Tensor& loss,
                       StepSums& sums) {
  const auto fail = [&](const std::string& reason) {
    const std::int64_t sentences = std::ssize(part.targets);
    std::int64_t half_rows = 0;
    if (sentences > 1) {
      for (const HostBatch& half : halves_of(part)) {
        half_rows = std::max(half_rows, batch_rows(half));
      }
    }
    throw TooLarge{reason, batch_rows(part), sentences, half_rows};
  };
  try {
    Tape tape(model_.parameters().weights().context());
    const ObjectiveLoss result = objective_.loss(part, first_sentence);
    tape.backward(result.total);
    convert(result.total.value(), loss);
    sums.target_tokens += result.target_tokens;
    // 0: the same as target_tokens.
    sums.tokens_processed +=
        result.tokens_processed > 0 ? result.tokens_processed : result.target_tokens;
  } catch (const OutOfMemory& error) {
    fail(error.what());
  } catch (const std::bad_alloc&) {
    fail("out of memory: the system refused memory.");
  }
}

void Learner::compute_in_parts(const TooLarge& failed) {
  if (failed.half_rows == 0) {
    throw Error(
        fmt::format("an example of {} tokens, source and target together, does not fit into "
                    "memory ({}). Lower data.max_length, data.window or the sizes of the model.",
                    grouped(failed.rows), without_full_stop(failed.reason)));
  }
  max_rows_ = failed.half_rows;
  if (!note_) return;
  note_(fmt::format(
      "a micro-batch of {} sentences and {} tokens, source and target together, does not fit into "
      "memory ({}); from now on micro-batches of more than {} tokens are computed in parts. A "
      "lower training.batch_tokens avoids this",
      grouped(failed.sentences), grouped(failed.rows), without_full_stop(failed.reason),
      grouped(max_rows_)));
}

bool Learner::fits(const HostBatch& batch) {
  const Tensor& gradients = model_.parameters().gradients();
  ContextBase& context = gradients.context();
  context.set_random_key({});
  const ModeScope scope(context, Mode::training);
  StepSums sums{.losses = Tensor::empty(context, DType::f64, {1})};
  bool fits = true;
  try {
    add_part(batch, 0, sums.losses, sums);
    context.synchronize();
  } catch (const TooLarge&) {
    fits = false;
  }
  fill(gradients, 0);
  return fits;
}

// Each half is summed starting from zero, so that a subtree gives the same bits on every worker.
void Learner::add_tree(const StepBatches& step, std::size_t first, std::size_t end,
                       StepSums& sums) {
  if (end - first == 1) return add_gradients(step, first, sums);
  const Tensor& gradients = model_.parameters().gradients();
  const std::size_t middle = first + (end - first) / 2;
  add_tree(step, first, middle, sums);
  const Tensor lower_half = copy_of(gradients);
  fill(gradients, 0);
  add_tree(step, middle, end, sums);
  add_into(lower_half, gradients);
}

void Learner::reduce(StepSums& sums) {
  if (communicator_.size() == 1) return;
  communicator_.all_reduce(model_.parameters().gradients());
  communicator_.all_reduce(sums.losses);
  sums.target_tokens = communicator_.sum(sums.target_tokens);
  sums.tokens_processed = communicator_.sum(sums.tokens_processed);
}

StepReport Learner::apply(const StepSums& sums, double learning_rate) {
  optimizer_.step({.learning_rate = learning_rate,
                   .tokens = static_cast<double>(sums.target_tokens),
                   .losses = sums.losses});
  // The host waits for the device only here.
  const kernels::AdamReport report = optimizer_.report();
  // The scale is 0 if the norm or a loss is not finite.
  StepReport result{.target_tokens = sums.target_tokens,
                    .tokens_processed = sums.tokens_processed,
                    .finite = report.scale != 0};
  for (const double loss : to_host<double>(sums.losses)) result.loss += loss;
  result.gradient_norm = std::isfinite(result.loss) ? report.gradient_norm : NAN;
  // Adam's bias correction counts updates of the moments; a skipped step must not count.
  if (!result.finite) optimizer_.set_steps(optimizer_.steps() - 1);
  return result;
}

std::string Learner::describe_first_non_finite(std::span<const HostBatch> batches,
                                               const RandomKey& key) {
  ContextBase& context = model_.parameters().weights().context();
  context.set_random_key(key);
  const ModeScope scope(context, Mode::training);
  std::string found =
      "the result of every operation is finite, but the gradients summed over the step, or their "
      "norm, are not";
  const std::vector<std::int32_t> first = first_sentences(batches);
  try {
    for (std::size_t i = 0; i < batches.size(); ++i) {
      std::int32_t sentence = first[i];
      const std::int64_t limit = max_rows_ > 0 ? max_rows_ : batch_rows(batches[i]);
      for (const HostBatch& part : split_batch(batches[i], limit)) {
        Tape tape(context, {.check_finite = true});
        tape.backward(objective_.loss(part, sentence).total);
        sentence += static_cast<std::int32_t>(part.pairs.size());
      }
    }
  } catch (const NotFinite& error) {
    found = error.what();
  }
  fill(model_.parameters().gradients(), 0);
  return found;
}

void check_worker_count(std::int64_t micro_batches, GradientSum sum, int workers) {
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
