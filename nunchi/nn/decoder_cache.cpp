#include "nunchi/nn/decoder_cache.h"

#include <algorithm>
#include <limits>

#include "nunchi/base/error.h"
#include "nunchi/kernels/decode_attention.h"
#include "nunchi/kernels/memory.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi::nn {
namespace {

// At least `needed`, and so much more than `now` that growing costs little in the end.
std::int64_t grown(std::int64_t now, std::int64_t needed, std::int64_t least) {
  return std::max({needed, 2 * now, least});
}

// The first elements of `to`.
void copy(const Tensor& from, const Tensor& to) {
  on_device(from.context(), [&](auto& ctx) {
    kernels::run(ctx, kernels::CopyBytes{.bytes = from.bytes(),
                                         .from = from.data<std::int32_t>(),
                                         .to = to.data<std::int32_t>()});
  });
}

}  // namespace

Tensor key_value_rows(ContextBase& context, DType dtype, std::int64_t rows, std::int64_t width) {
  constexpr std::int64_t kLine = 64;
  return Tensor::empty(context, dtype,
                       {rows, width + kLine / static_cast<std::int64_t>(size_of(dtype))});
}

std::int64_t decode_capacity(std::int64_t rows) {
  if (rows <= 16) return std::max<std::int64_t>(rows, 1);
  const std::int64_t unit = rows <= 64 ? 8 : 16;
  return (rows + unit - 1) / unit * unit;
}

DecoderCache::DecoderCache(ContextBase& context, const Options& options)
    : context_(context), width_(options.width), dtype_(options.dtype) {
  if (options.memory != nullptr) {
    memory_begin_ = Tensor::empty(context, DType::i32, {options.memory->sentences});
    memory_length_ = Tensor::empty(context, DType::i32, {options.memory->sentences});
    memory_longest_ = options.memory->max_length;
    restart(*options.memory);
  }
  for (int i = 0; i < options.layers; ++i) {
    layers_.push_back(key_value_rows(context, dtype_, 0, width_));
  }
}

bool DecoderCache::fits(const Ragged& memory) const {
  if (!memory_begin_.defined()) return true;
  return memory.sentences <= memory_begin_.size(0) && memory.max_length <= memory_longest_;
}

void DecoderCache::restart(const Ragged& memory) {
  slots_ = positions_ = 0;
  if (turned_) turn();
  if (!memory_begin_.defined()) return;
  copy(memory.begin, memory_begin_);
  copy(memory.length, memory_length_);
}

void DecoderCache::turn() {
  std::swap(now_, before_);
  turned_ = !turned_;
}

bool DecoderCache::reserve_slots(std::int64_t slots) {
  if (slots > std::numeric_limits<std::int32_t>::max()) {
    throw Error("decoding needs " + std::to_string(slots) +
                " slots for keys and values, which is too many; use smaller batches or a lower "
                "maximum length.");
  }
  bool moved = false;
  for (Tensor& layer : layers_) {
    if (layer.size(0) >= slots) continue;
    moved = true;
    constexpr std::int64_t kLeast = 64;
    const Tensor larger =
        key_value_rows(context_, dtype_, grown(layer.size(0), slots, kLeast), width_);
    dispatch(layer, [&]<class T>(auto& ctx) {
      kernels::run(ctx, kernels::CopyBytes{
                            .bytes = static_cast<std::size_t>(slots_ * layer.size(1)) * sizeof(T),
                            .from = layer.data<T>(),
                            .to = larger.data<T>()});
    });
    layer = larger;
  }
  return moved;
}

bool DecoderCache::make_room(std::int64_t hypotheses, std::int64_t positions) {
  if (now_.slots.defined() && now_.slots.size(0) >= hypotheses && now_.slots.size(1) >= positions) {
    return false;
  }
  constexpr std::int64_t kLeastPositions = 32;
  const std::int64_t before = before_.slots.defined() ? before_.slots.size(1) : 0;
  const std::int64_t stride =
      before >= positions ? before : grown(before, positions, kLeastPositions);
  // Rows for spare ones too: where each row is a hypothesis, attention looks them up.
  const std::int64_t rows = decode_capacity(hypotheses);
  now_ = {.slots = Tensor::empty(context_, DType::i32, {rows, stride}),
          .lengths = Tensor::empty(context_, DType::i32, {rows}),
          .taken = Tensor::empty(context_, DType::i32, {1})};
  return true;
}

bool DecoderCache::reserve(std::int64_t steps, std::int64_t hypotheses) {
  if (!now_.slots.defined()) throw Error("a step that is replayed follows one that is not.");
  bool moved = reserve_slots(slots_ + steps * hypotheses) || moved_;
  moved_ = false;
  slots_ += steps * hypotheses;
  turn();
  moved = make_room(before_.slots.size(0), before_.slots.size(1)) || moved;
  turn();
  return moved;
}

struct DecoderCache::Planned {
  DecodeStep step;
  kernels::ExtendSlots slots;
};

DecodeStep DecoderCache::extend(const StepTokens& tokens) {
  const Planned planned = plan(tokens);
  on_device(context_, [&](auto& ctx) { kernels::run(ctx, planned.slots); });
  return planned.step;
}

DecoderCache::Embedded DecoderCache::extend(const StepTokens& tokens, const Embedding& embedding,
                                            const Position& position) {
  const Planned planned = plan(tokens);
  return {planned.step, embedding.step(tokens.ids, planned.step.rows, position, planned.slots)};
}

DecoderCache::Planned DecoderCache::plan(const StepTokens& tokens) {
  const std::int64_t capacity = tokens.ids.size(0), hypotheses = tokens.hypotheses;
  if (capacity != decode_capacity(tokens.tokens)) {
    throw Error("a step of " + std::to_string(tokens.tokens) + " tokens came with room for " +
                std::to_string(capacity) + ".");
  }
  const bool replayed = tokens.active.defined();
  if (!replayed) moved_ = reserve_slots(slots_ + tokens.tokens) || moved_;
  positions_ += tokens.most;
  if (tokens.longest > 0)
    positions_ = replayed ? tokens.longest : std::min(positions_, tokens.longest);
  turn();
  moved_ =
      make_room(std::max(hypotheses, tokens.room), std::max(positions_, tokens.longest)) || moved_;

  // last_row [H], six columns of the rows, the count.
  const Tensor numbers = Tensor::empty(context_, DType::i32, {hypotheses + 6 * capacity + 2});
  const auto of_rows = [&](int i) { return numbers.part(hypotheses + i * capacity, {capacity}); };
  const Tensor last_row = numbers.part(0, {hypotheses});
  const Tensor hypothesis = of_rows(0), position = of_rows(1), visible = of_rows(2),
               slot = of_rows(3), begin = of_rows(4), memory = of_rows(5);
  const Tensor count = numbers.part(hypotheses + 6 * capacity, {2});
  const auto data = [](const Tensor& tensor) {
    return tensor.defined() ? tensor.data<std::int32_t>() : nullptr;
  };
  const kernels::ExtendSlots slots{
      .hypotheses = hypotheses,
      .first_slot = slots_,
      .active = data(tokens.active),
      .width = tokens.width,
      .taken_before = replayed ? data(before_.taken) : nullptr,
      .capacity = capacity,
      .parent = data(tokens.parents),
      .sentence = data(tokens.sentences),
      .offset = data(tokens.offsets),
      .old_slot = data(before_.slots),
      .old_stride = before_.slots.defined() ? before_.slots.size(1) : 0,
      .old_length = data(before_.lengths),
      .slot = data(now_.slots),
      .stride = now_.slots.size(1),
      .length = data(now_.lengths),
      .memory_begin = data(memory_begin_),
      .memory_length = data(memory_length_),
      .row_hypothesis = data(hypothesis),
      .row_position = data(position),
      .row_visible = data(visible),
      .row_slot = data(slot),
      .row_begin = data(begin),
      .row_memory = data(memory),
      .last_row = data(last_row),
      .count = data(count),
      .taken = data(now_.taken)};
  if (!replayed) slots_ += tokens.tokens;

  DecodeStep step{.last_row = last_row,
                  .one_each = !tokens.offsets.defined(),
                  .row_slot = slot,
                  .past = {.slot = now_.slots,
                           .hypothesis = tokens.offsets.defined() ? hypothesis : Tensor(),
                           .length = visible,
                           .max_keys = positions_},
                  .memory = {.begin = begin, .length = memory, .max_keys = memory_longest_}};
  step.rows.rows = tokens.tokens;
  step.rows.capacity = capacity;
  step.rows.max_length = positions_;
  step.rows.count = count.part(0, {1});
  step.rows.row_sentence = hypothesis;
  step.rows.row_position = position;
  step.last = step.rows;
  step.last.rows = hypotheses;
  step.last.count = count.part(1, {1});
  step.last.capacity = decode_capacity(hypotheses);
  return {step, slots};
}

}  // namespace nunchi::nn
