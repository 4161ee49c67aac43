#include "nunchi/nn/recurrent_cache.h"

#include <algorithm>

#include "nunchi/base/error.h"

namespace nunchi::nn {
namespace {

StateRows gathered(const StateRows& from, const Ragged& rows, const Tensor& index) {
  return {gather_rows(from.h, rows, index),
          from.c.defined() ? gather_rows(from.c, rows, index) : Tensor()};
}

}  // namespace

void RecurrentCache::restart(std::vector<StateRows> first) {
  first_ = std::move(first);
  if (turned_) turn();
}

void RecurrentCache::turn() {
  std::swap(now_, before_);
  turned_ = !turned_;
}

bool RecurrentCache::make_room(std::int64_t rows) {
  if (!now_.empty() && now_.front().h.size(0) >= rows) return false;
  const Shape shape{rows, options_.width};
  now_.clear();
  for (std::size_t i = 0; i < options_.layers; ++i) {
    now_.push_back(
        {Tensor::empty(context_, options_.dtype, shape),
         options_.cells ? Tensor::empty(context_, summed(options_.dtype), shape) : Tensor()});
  }
  return true;
}

RecurrentCache::Step RecurrentCache::extend(const StepTokens& tokens, const DecodeStep& step) {
  const bool first = !tokens.parents.defined();
  turn();
  make_room(std::max(step.last.capacity, decode_capacity(tokens.room)));
  Step result;
  for (const StateRows& layer : first ? first_ : before_) {
    result.before.push_back(gathered(layer, step.last, first ? tokens.sentences : tokens.parents));
  }
  for (const StateRows& layer : now_) {
    result.after.push_back({layer.h.rows(0, step.last.capacity),
                            layer.c.defined() ? layer.c.rows(0, step.last.capacity) : Tensor()});
  }
  return result;
}

bool RecurrentCache::reserve() {
  if (now_.empty()) throw Error("a step that is replayed follows one that is not.");
  const std::int64_t rows = now_.front().h.size(0);
  turn();
  const bool moved = make_room(rows);
  turn();
  return moved;
}

}  // namespace nunchi::nn
