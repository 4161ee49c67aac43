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
      length(Tensor::empty(context, DType::i32, {rows})),
      counts(zeros(context, DType::i32, {2})) {}

FinishedMemory::FinishedMemory(ContextBase& context, const Size& size)
    : size_(size), memory_(Tensor::empty(context, DType::i8, {bytes()})) {
  clear(0, size.units);
}

void FinishedMemory::clear(std::int64_t first_unit, std::int64_t units) const {
  on_device(memory_.context(), [&](auto& ctx) {
    const kernels::FinishedRows to = rows();
    for (std::int32_t* values : {to.count, to.done}) {
      kernels::run(ctx, kernels::Fill<std::int32_t>{.count = units, .out = values + first_unit});
    }
  });
}

std::vector<std::int32_t> FinishedMemory::done() const {
  std::vector<std::int32_t> done(static_cast<std::size_t>(size_.units));
  on_device(memory_.context(), [&](auto& ctx) {
    kernels::run(ctx, kernels::CopyBytes{.direction = kernels::CopyBytes::Direction::to_host,
                                         .bytes = done.size() * sizeof(std::int32_t),
                                         .from = rows().done,
                                         .to = done.data()});
  });
  return done;
}

kernels::FinishedRows FinishedMemory::download(std::vector<std::int8_t>& buffer) const {
  buffer = to_host<std::int8_t>(memory_);
  return rows_at(buffer.data());
}

// Scores come first because their elements are the largest, which keeps everything aligned.
kernels::FinishedRows FinishedMemory::rows_at(std::int8_t* memory) const {
  std::int64_t offset = 0;
  const auto take = [&]<class T>(T*& to, std::int64_t count) {
    to = reinterpret_cast<T*>(memory + offset);
    offset += count * static_cast<std::int64_t>(sizeof(T));
  };
  kernels::FinishedRows rows;
  take(rows.score, hypotheses());
  take(rows.tokens, tokens());
  take(rows.token_scores, tokens());
  take(rows.length, hypotheses());
  take(rows.ended, hypotheses());
  take(rows.count, size_.units);
  take(rows.done, size_.units);
  return rows;
}

UnitOptionsMemory::UnitOptionsMemory(ContextBase& context, std::int64_t units)
    : host_(static_cast<std::size_t>(units)),
      device_(Tensor::empty(context, DType::i8,
                            {units * static_cast<std::int64_t>(sizeof(kernels::UnitOptions))})) {}

void UnitOptionsMemory::upload(std::int64_t first_unit, std::int64_t units) const {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(kernels::UnitOptions));
  const auto* from = reinterpret_cast<const std::int8_t*>(host_.data() + first_unit);
  copy_from_host(std::span(from, static_cast<std::size_t>(units * kBytes)),
                 device_.flat_slice(first_unit * kBytes, {units * kBytes}));
}

}  // namespace nunchi
