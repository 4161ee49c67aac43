#include "nunchi/decoding/search_memory.h"

#include "nunchi/kernels/memory.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {

RowMemory::RowMemory(ContextBase& context, std::int64_t rows, std::int64_t stride)
    : tokens(Tensor::empty(context, DType::i32, {rows, stride})),
      token_scores(Tensor::empty(context, DType::f32, {rows, stride})),
      score(zeros(context, DType::f64, {rows})),
      unit(Tensor::empty(context, DType::i32, {rows})),
      counts(zeros(context, DType::i32, {2})) {}

FinishedMemory::FinishedMemory(ContextBase& context, const Units& units)
    : hypotheses_(units.count * units.beam),
      tokens_(hypotheses_ * units.stride),
      units_(units.count),
      memory_(Tensor::empty(context, DType::i8, {bytes()})) {}

void FinishedMemory::clear() const {
  on_device(memory_.context(), [&](auto& ctx) {
    kernels::run(ctx, kernels::Fill<std::int32_t>{.count = units_, .out = rows().count});
  });
}

kernels::FinishedRows FinishedMemory::download(std::vector<std::int8_t>& room) const {
  room = to_host<std::int8_t>(memory_);
  return rows_at(room.data());
}

// Scores come first: they have the largest elements.
kernels::FinishedRows FinishedMemory::rows_at(std::int8_t* memory) const {
  const auto at = [&]<class T>(T*, std::int64_t offset) {
    return reinterpret_cast<T*>(memory + offset);
  };
  kernels::FinishedRows rows;
  rows.score = at(rows.score, 0);
  rows.tokens = at(rows.tokens, 8 * hypotheses_);
  rows.token_scores = at(rows.token_scores, 8 * hypotheses_ + 4 * tokens_);
  rows.length = at(rows.length, 8 * hypotheses_ + 8 * tokens_);
  rows.ended = at(rows.ended, 12 * hypotheses_ + 8 * tokens_);
  rows.count = at(rows.count, 16 * hypotheses_ + 8 * tokens_);
  return rows;
}

}  // namespace nunchi
