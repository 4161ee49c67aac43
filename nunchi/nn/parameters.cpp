#include "nunchi/nn/parameters.h"

#include <cmath>

#include "nunchi/base/error.h"
#include "nunchi/kernels/memory.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi::nn {
namespace {

constexpr std::int64_t kAlignment = 16;

std::int64_t aligned(std::int64_t count) {
  return (count + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Init Init::xavier(std::int64_t inputs, std::int64_t outputs) {
  return {Kind::uniform, std::sqrt(6.0 / static_cast<double>(inputs + outputs))};
}

Variable Parameters::add(std::string name, const Shape& shape, const Init& init) {
  if (find(name) != nullptr) throw Error("two parameters are called '" + name + "'.");
  places_.emplace(name, entries_.size());
  entries_.push_back({std::move(name), shape, init, Variable(Tensor(), false)});
  return entries_.back().variable;
}

void Parameters::allocate(ContextBase& context, const Memory& memory) {
  std::int64_t size = 0;
  for (const bool matrices : {true, false}) {
    for (ParameterEntry& entry : entries_) {
      if ((entry.shape.dimensions() >= 2) != matrices) continue;
      entry.offset = size;
      size += aligned(entry.shape.elements());
    }
    if (matrices) decayed_ = size;
  }
  weights_ = zeros(context, memory.dtype, {size});
  gradients_ = memory.gradients ? zeros(context, memory.dtype, {size}) : Tensor();
  for (ParameterEntry& entry : entries_) {
    entry.variable.share_version(version_);
    entry.variable.bind(weights_.part(entry.offset, entry.shape),
                        memory.gradients ? gradients_.part(entry.offset, entry.shape) : Tensor());
  }
  changed();
}

void Parameters::initialize(std::uint64_t seed) {
  std::uint32_t place = 0;
  for (const ParameterEntry& entry : entries_) {
    const Tensor& value = entry.variable.value();
    const std::uint32_t own_place = place++;
    if (entry.init.kind == Init::Kind::zeros || entry.init.kind == Init::Kind::ones) {
      fill(value, entry.init.kind == Init::Kind::ones ? 1 : 0);
      continue;
    }
    dispatch(value, [&]<class T>(auto& ctx) {
      using Distribution = typename kernels::RandomFill<T>::Distribution;
      kernels::run(ctx, kernels::RandomFill<T>{.distribution = entry.init.kind == Init::Kind::normal
                                                                   ? Distribution::normal
                                                                   : Distribution::uniform,
                                               .scale = entry.init.scale,
                                               .key = {.seed = seed},
                                               .place = own_place,
                                               .count = value.elements(),
                                               .out = value.data<T>()});
    });
  }
  changed();
}

const ParameterEntry* Parameters::find(const std::string& name) const {
  const auto place = places_.find(name);
  return place == places_.end() ? nullptr : &entries_[place->second];
}

std::int64_t Parameters::count() const {
  std::int64_t count = 0;
  for (const ParameterEntry& entry : entries_) count += entry.shape.elements();
  return count;
}

}  // namespace nunchi::nn
