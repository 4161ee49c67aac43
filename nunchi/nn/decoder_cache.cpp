#include "nunchi/nn/decoder_cache.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "nunchi/base/error.h"
#include "nunchi/kernels/decode_attention.h"
#include "nunchi/kernels/memory.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi::nn {
namespace {

constexpr std::int64_t kUnitNumbers = sizeof(kernels::UnitSlots) / sizeof(std::int32_t);

std::int32_t* data(const Tensor& tensor) {
  return tensor.defined() ? tensor.data<std::int32_t>() : nullptr;
}

CacheLimits with_slots(CacheLimits limits) {
  const std::int64_t each = SlotBlocks::blocks_for(limits.slots_for(1, limits.positions));
  const std::int64_t most = std::numeric_limits<std::int32_t>::max() / SlotBlocks::kSlots;
  const std::int64_t asked =
      limits.slots == 0 ? limits.units * each : SlotBlocks::blocks_for(limits.slots);
  limits.slots = std::min(asked, most) * SlotBlocks::kSlots;
  return limits;
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

DecoderCache::DecoderCache(ContextBase& context, const Options& options, const CacheLimits& limits)
    : context_(context),
      width_(options.width),
      dtype_(options.dtype),
      limits_(with_slots(limits)),
      blocks_({.units = limits_.units,
               .unit_slots = limits_.slots_for(1, limits_.positions),
               .slots = limits_.slots}),
      memory_(limits_.memory_rows),
      unit_slots_(static_cast<std::size_t>(limits_.units * kUnitNumbers)),
      device_unit_slots_(Tensor::empty(context, DType::i32, {limits_.units, kUnitNumbers})) {
  for (int i = 0; i < options.layers; ++i) {
    layers_.push_back(key_value_rows(context, dtype_, 0, width_));
  }
  if (!layers_.empty()) {
    device_blocks_ = Tensor::empty(context, DType::i32, {limits_.units, blocks_.stride()});
  }
  for (Table* table : {&current_, &previous_}) {
    table->slots = Tensor::empty(context, DType::i32, {table_rows(), limits_.positions});
    table->lengths = Tensor::empty(context, DType::i32, {table_rows()});
  }
}

bool DecoderCache::admit(std::int64_t unit, const Unit& needs) {
  if (needs.max_length > limits_.positions || needs.memory_length > limits_.source_length)
    return false;
  if (!blocks_.reserve(unit, limits_.slots_for(needs.prompt, needs.max_length))) return false;
  std::int32_t* const to = unit_slots_.data() + unit * kUnitNumbers;
  to[0] = static_cast<std::int32_t>(needs.prompt);
  to[1] = static_cast<std::int32_t>(needs.memory_begin);
  to[2] = static_cast<std::int32_t>(needs.memory_length);
  units_changed_ = true;
  for (DecoderCache* follower : followers_) {
    if (!follower->admit(unit, needs)) {
      throw Error("the caches of an ensemble's members differ (internal error).");
    }
  }
  return true;
}

void DecoderCache::release(std::int64_t unit) {
  blocks_.release(unit);
  for (DecoderCache* follower : followers_) follower->release(unit);
}

void DecoderCache::set_memory_length(std::int64_t begin, std::int64_t rows) {
  for (std::int64_t unit = 0; unit < limits_.units; ++unit) {
    std::int32_t* const numbers = unit_slots_.data() + unit * kUnitNumbers;
    if (numbers[1] == begin) numbers[2] = static_cast<std::int32_t>(rows);
  }
  units_changed_ = true;
}

void DecoderCache::provide_slots(std::int64_t unit, std::int64_t tokens) {
  for (DecoderCache* follower : followers_) follower->provide_slots(unit, tokens);
  if (layers_.empty()) return;
  const std::int64_t prompt = unit_slots_[static_cast<std::size_t>(unit * kUnitNumbers)];
  if (blocks_.take(unit, limits_.slots_for(prompt, tokens))) blocks_changed_ = true;
}

void DecoderCache::publish() {
  for (DecoderCache* follower : followers_) follower->publish();
  if (std::exchange(units_changed_, false)) {
    copy_from_host(std::span<const std::int32_t>(unit_slots_), device_unit_slots_);
  }
  if (layers_.empty() || !std::exchange(blocks_changed_, false)) return;
  copy_from_host(blocks_.table(), device_blocks_);
  grow_layers(blocks_.used_slots());
}

// Doubles the layers, up to the bound, so that growing costs little in the end.
void DecoderCache::grow_layers(std::int64_t slots) {
  constexpr std::int64_t kLeast = 64;
  for (Tensor& layer : layers_) {
    const std::int64_t before = layer.size(0);
    if (before >= slots) continue;
    moved_ = true;
    const std::int64_t size =
        std::max(slots, std::min(std::max(2 * before, kLeast), blocks_.bound()));
    const Tensor larger = key_value_rows(context_, dtype_, size, width_);
    dispatch(layer, [&]<class T>(auto& ctx) {
      kernels::run(ctx, kernels::CopyBytes{
                            .bytes = static_cast<std::size_t>(before * layer.size(1)) * sizeof(T),
                            .from = layer.data<T>(),
                            .to = larger.data<T>()});
    });
    layer = larger;
  }
}

bool DecoderCache::take_moved() { return std::exchange(moved_, false); }

void DecoderCache::swap_buffers() {
  std::swap(current_, previous_);
  swapped_ = !swapped_;
}

void DecoderCache::reset_buffers() {
  if (swapped_) swap_buffers();
  entered_ = 0;
  for (DecoderCache* follower : followers_) follower->reset_buffers();
}

void DecoderCache::skip_steps(std::int64_t steps) {
  if (steps % 2 != 0) swap_buffers();
  entered_ = 0;
  for (DecoderCache* follower : followers_) follower->skip_steps(steps);
}

// First steps add rows to the newest table; other steps write the next one.
void DecoderCache::record_step(const StepTokens& tokens) {
  check(tokens);
  const bool first = !tokens.parents.defined();
  if (!first) swap_buffers();
  entered_ = first ? entered_ + tokens.hypotheses : 0;
}

// Attention reads the slots of spare rows too, up to the capacity of a step.
std::int64_t DecoderCache::table_rows() const {
  constexpr std::int64_t kSpare = 16;
  return first_row() + limits_.units + kSpare;
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

void DecoderCache::check(const StepTokens& tokens) const {
  if (tokens.ids.size(0) != decode_capacity(tokens.tokens)) {
    throw Error("a step of " + std::to_string(tokens.tokens) + " tokens came with ids for " +
                std::to_string(tokens.ids.size(0)) + " (internal error).");
  }
  const bool first = !tokens.parents.defined();
  const std::int64_t most = first ? free_first_rows() : limits_.rows();
  if (tokens.hypotheses > most) {
    throw Error("a step of " + std::to_string(tokens.hypotheses) +
                " hypotheses does not fit into a cache for " + std::to_string(most) +
                " (internal error).");
  }
}

struct DecoderCache::RowNumbers {
  Tensor last_row, count;                                                   // [H], [2]
  Tensor hypothesis, position, visible, slot, memory_begin, memory_length;  // [capacity]

  RowNumbers(ContextBase& context, std::int64_t hypotheses, std::int64_t capacity) {
    const Tensor all = Tensor::empty(context, DType::i32, {hypotheses + 6 * capacity + 2});
    std::int64_t taken = 0;
    const auto take = [&](std::int64_t size) {
      taken += size;
      return all.flat_slice(taken - size, {size});
    };
    last_row = take(hypotheses);
    for (Tensor* column :
         {&hypothesis, &position, &visible, &slot, &memory_begin, &memory_length}) {
      *column = take(capacity);
    }
    count = take(2);
  }
};

DecoderCache::Planned DecoderCache::plan(const StepTokens& tokens) {
  const bool first = !tokens.parents.defined();
  const std::int64_t hypotheses = tokens.hypotheses;
  const std::int64_t table_row = first ? next_first_row() : 0;
  record_step(tokens);
  const std::int64_t rows_left = table_rows() - table_row;
  const Table table{current_.slots.rows(table_row, rows_left),
                    current_.lengths.flat_slice(table_row, {rows_left})};
  const RowNumbers rows(context_, hypotheses, tokens.ids.size(0));
  const kernels::ExtendSlots slots{
      .hypotheses = hypotheses,
      .active = data(tokens.active),
      .hypotheses_per_unit = first ? 1 : limits_.beam,
      .capacity = tokens.ids.size(0),
      .parent = data(tokens.parents),
      .unit = data(tokens.units),
      .offset = data(tokens.offsets),
      .old_slot = first ? nullptr : data(previous_.slots),
      .old_stride = limits_.positions,
      .old_length = first ? nullptr : data(previous_.lengths),
      .units = reinterpret_cast<const kernels::UnitSlots*>(data(device_unit_slots_)),
      .block = data(device_blocks_),
      .block_stride = blocks_.stride(),
      .block_slots = SlotBlocks::kSlots,
      .slot = data(table.slots),
      .stride = limits_.positions,
      .length = data(table.lengths),
      .row_hypothesis = data(rows.hypothesis),
      .row_position = data(rows.position),
      .row_keys = data(rows.visible),
      .row_slot = data(rows.slot),
      .row_memory_begin = data(rows.memory_begin),
      .row_memory_length = data(rows.memory_length),
      .last_row = data(rows.last_row),
      .count = data(rows.count)};

  const std::int64_t max_length = tokens.max_length > 0 ? tokens.max_length : limits_.positions;
  const bool one_each = !tokens.offsets.defined();
  DecodeStep step{.last_row = rows.last_row,
                  .one_each = one_each,
                  .buffer = swapped_ ? 1 : 0,
                  .table_row = table_row,
                  .row_slot = rows.slot,
                  .past = {.slot = table.slots,
                           .hypothesis = one_each ? Tensor() : rows.hypothesis,
                           .length = rows.visible,
                           .max_keys = max_length},
                  .memory = {.begin = rows.memory_begin,
                             .length = rows.memory_length,
                             .max_keys = limits_.source_length}};
  step.rows.rows = tokens.tokens;
  step.rows.capacity = tokens.ids.size(0);
  step.rows.max_length = max_length;
  step.rows.count = rows.count.flat_slice(0, {1});
  step.rows.row_sentence = rows.hypothesis;
  step.rows.row_position = rows.position;
  step.last = step.rows;
  step.last.rows = hypotheses;
  step.last.count = rows.count.flat_slice(1, {1});
  step.last.capacity = decode_capacity(hypotheses);
  return {step, slots};
}

}  // namespace nunchi::nn
