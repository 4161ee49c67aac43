#include "nunchi/decoding/search_memory.h"

#include "nunchi/kernels/memory.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {

ActiveHypotheses::ActiveHypotheses(ContextBase& context, std::int64_t rows, std::int64_t stride)
    : tokens(Tensor::empty(context, DType::i32, {rows, stride})),
      token_scores(Tensor::empty(context, DType::f32, {rows, stride})),
      score(zeros(context, DType::f64, {rows})),
      unit(Tensor::empty(context, DType::i32, {rows})),
      length(Tensor::empty(context, DType::i32, {rows})),
      counts(zeros(context, DType::i32, {2})) {}

FinishedHypotheses::FinishedHypotheses(ContextBase& context, const Size& size)
    : size_(size), memory_(Tensor::empty(context, DType::i8, {bytes()})) {
  clear(0, size.units);
}

void FinishedHypotheses::clear(std::int64_t first_unit, std::int64_t units) const {
  on_device(memory_.context(), [&](auto& ctx) {
    const kernels::FinishedRows finished = rows();
    for (std::int32_t* values : {finished.count, finished.unit_done}) {
      kernels::run(ctx, kernels::Fill<std::int32_t>{.count = units, .out = values + first_unit});
    }
  });
}

std::vector<std::int32_t> FinishedHypotheses::download_done_flags() const {
  std::vector<std::int32_t> flags(static_cast<std::size_t>(size_.units));
  on_device(memory_.context(), [&](auto& ctx) {
    kernels::run(ctx, kernels::CopyBytes{.direction = kernels::CopyBytes::Direction::to_host,
                                         .bytes = flags.size() * sizeof(std::int32_t),
                                         .from = rows().unit_done,
                                         .to = flags.data()});
  });
  return flags;
}

kernels::FinishedRows FinishedHypotheses::download(std::vector<std::int8_t>& buffer) const {
  buffer = to_host<std::int8_t>(memory_);
  return rows_at(buffer.data());
}

// Scores come first because their elements are the largest, which keeps everything aligned.
kernels::FinishedRows FinishedHypotheses::rows_at(std::int8_t* memory) const {
  std::int64_t offset = 0;
  const auto take = [&]<class T>(T*& array, std::int64_t count) {
    array = reinterpret_cast<T*>(memory + offset);
    offset += count * static_cast<std::int64_t>(sizeof(T));
  };
  kernels::FinishedRows rows;
  take(rows.score, hypothesis_capacity());
  take(rows.tokens, token_capacity());
  take(rows.token_scores, token_capacity());
  take(rows.length, hypothesis_capacity());
  take(rows.ended_by_eos, hypothesis_capacity());
  take(rows.count, size_.units);
  take(rows.unit_done, size_.units);
  return rows;
}

UnitOptionsBuffer::UnitOptionsBuffer(ContextBase& context, std::int64_t units)
    : host_(static_cast<std::size_t>(units)),
      device_(Tensor::empty(context, DType::i8,
                            {units * static_cast<std::int64_t>(sizeof(kernels::UnitOptions))})) {}

namespace {

// Copies elements of a host array to the same elements of its copy on the device.
template <class T>
void upload_elements(const std::vector<T>& host, const Tensor& device, std::int64_t first,
                     std::int64_t count) {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
  const auto* from = reinterpret_cast<const std::int8_t*>(host.data() + first);
  copy_from_host(std::span(from, static_cast<std::size_t>(count * kBytes)),
                 device.flat_slice(first * kBytes, {count * kBytes}));
}

}  // namespace

void UnitOptionsBuffer::upload(std::int64_t first_unit, std::int64_t units) const {
  upload_elements(host_, device_, first_unit, units);
}

void UnitPhrasesBuffer::set(std::int64_t unit, const kernels::UnitPhrases& phrases) {
  if (host_.empty()) {
    if (phrases.count == 0) return;
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(kernels::UnitPhrases));
    host_.resize(static_cast<std::size_t>(units_));
    device_ = Tensor::empty(context_, DType::i8, {units_ * kBytes});
    upload(0, units_);
  }
  host_[static_cast<std::size_t>(unit)] = phrases;
}

void UnitPhrasesBuffer::upload(std::int64_t first_unit, std::int64_t units) const {
  if (!host_.empty()) upload_elements(host_, device_, first_unit, units);
}

}  // namespace nunchi
