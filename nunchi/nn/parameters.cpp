#include "nunchi/nn/parameters.h"

#include <cmath>

#include "nunchi/base/error.h"
#include "nunchi/kernels/int8_product.h"
#include "nunchi/kernels/memory.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi::nn {
namespace {

constexpr std::int64_t kAlignment = 16;

std::int64_t aligned(std::int64_t count) {
  return (count + kAlignment - 1) / kAlignment * kAlignment;
}

template <class T>
std::vector<T> draw(CpuContext& host, const ParameterEntry& entry, std::uint64_t seed,
                    std::uint32_t tensor_id) {
  using Distribution = typename kernels::RandomFill<T>::Distribution;
  std::vector<T> values(static_cast<std::size_t>(entry.shape.elements()));
  kernels::run(host, kernels::RandomFill<T>{.distribution = entry.init.kind == Init::Kind::normal
                                                                ? Distribution::normal
                                                                : Distribution::uniform,
                                            .scale = entry.init.scale,
                                            .key = {.seed = seed},
                                            .tensor_id = tensor_id,
                                            .count = entry.shape.elements(),
                                            .out = values.data()});
  for (std::int64_t i = 0; i < entry.init.first; ++i) {
    values[static_cast<std::size_t>(i)] *= static_cast<T>(entry.init.first_factor);
  }
  return values;
}

// Gives a weight memory for its int8 form only.
void bind_int8(ContextBase& context, ParameterEntry& entry) {
  const std::int64_t n = entry.shape[0], k = entry.shape[1];
  entry.variable.bind(Tensor::without_memory(context, DType::f32, entry.shape), Tensor());
  entry.variable.forms()->replace_by_int8(
      {.values = Tensor::empty(context, DType::u8,
                               {kernels::int8_panels(n), kernels::int8_groups(k),
                                kernels::kInt8PanelRows, kernels::kInt8Group}),
       .scales = Tensor::empty(context, DType::f32, {n})});
}

}  // namespace

Init Init::xavier(std::int64_t inputs, std::int64_t outputs) {
  return {.kind = Kind::uniform, .scale = std::sqrt(6.0 / static_cast<double>(inputs + outputs))};
}

Variable Parameters::add(std::string name, const Shape& shape, const Init& init, ParameterUse use) {
  if (find(name) != nullptr) throw Error("two parameters are called '" + name + "'.");
  indices_.emplace(name, entries_.size());
  entries_.push_back({std::move(name), shape, init, use, Variable(Tensor(), false)});
  return entries_.back().variable;
}

void Parameters::check_can_train(const ContextBase& context) {
  if (context.precision() != Precision::int8) return;
  throw UsageError(
      "models are trained in f32 or bf16, not in int8; 'nunchi quantize' makes a trained model "
      "int8.");
}

void Parameters::allocate(ContextBase& context, const Memory& memory) {
  if (memory.gradients) check_can_train(context);
  const bool may_quantize = memory.int8 && !memory.gradients && context.device() == Device::cpu &&
                            memory.dtype.value_or(compute_type(context)) == DType::f32;
  std::int64_t size = 0;
  for (const bool matrices : {true, false}) {
    for (ParameterEntry& entry : entries_) {
      if ((entry.shape.dimensions() >= 2) != matrices) continue;
      entry.int8 = may_quantize && entry.use == ParameterUse::product &&
                   entry.shape.dimensions() == 2 && entry.shape[1] <= kernels::kInt8MaxColumns &&
                   memory.int8(entry);
      if (entry.int8) continue;
      entry.offset = size;
      size += aligned(entry.shape.elements());
    }
    if (matrices) decayed_ = size;
  }
  const DType value_type = memory.dtype.value_or(compute_type(context));
  const DType weight_type = memory.gradients ? accumulator_type(value_type) : value_type;
  weights_ = zeros(context, weight_type, {size});
  values_ = weight_type == value_type ? weights_ : zeros(context, value_type, {size});
  gradients_ = memory.gradients ? zeros(context, weight_type, {size}) : Tensor();
  for (ParameterEntry& entry : entries_) {
    entry.variable.share_version(version_);
    if (entry.int8) {
      bind_int8(context, entry);
      continue;
    }
    entry.variable.bind(
        values_.flat_slice(entry.offset, entry.shape),
        memory.gradients ? gradients_.flat_slice(entry.offset, entry.shape) : Tensor());
  }
  changed();
}

// A kernel with an overlapped launch may read parameters before the previous kernel has finished.
// So only copies and kernels without overlapped launches may write them
// (kernels/cuda/common/device.h).
void Parameters::changed() {
  if (values_.dtype() != weights_.dtype()) convert(weights_, values_);
  values_changed();
}

void Parameters::initialize(std::uint64_t seed) {
  // Drawn on the CPU, so that every device starts from the same weights.
  CpuContext host;
  std::uint32_t parameter = 0;
  for (const ParameterEntry& entry : entries_) {
    const Tensor value = weight(entry);
    const std::uint32_t tensor_id = parameter++;
    if (entry.int8) {
      quantize_rows(entry, 0, draw<float>(host, entry, seed, tensor_id));
    } else if (entry.init.kind == Init::Kind::zeros || entry.init.kind == Init::Kind::ones) {
      fill(value, entry.init.kind == Init::Kind::ones ? 1 : 0);
    } else if (value.dtype() == DType::f64) {
      copy_from_host(std::span<const double>(draw<double>(host, entry, seed, tensor_id)), value);
    } else {
      const std::vector<float> drawn = draw<float>(host, entry, seed, tensor_id);
      convert(from_host(value.context(), drawn, value.shape()), value);
    }
  }
  changed();
}

void Parameters::quantize_rows(const ParameterEntry& entry, std::int64_t first,
                               std::span<const float> rows) {
  const std::int64_t n = entry.shape[0], k = entry.shape[1];
  const std::int64_t count = k > 0 ? static_cast<std::int64_t>(rows.size()) / k : 0;
  if (!entry.int8 || first < 0 || first % kernels::kInt8PanelRows != 0 || first + count > n ||
      count * k != static_cast<std::int64_t>(rows.size())) {
    throw Error("quantize_rows: " + std::to_string(rows.size()) + " numbers from row " +
                std::to_string(first) + " on are not rows of '" + entry.name + "'.");
  }
  const FormedWeight& form = entry.variable.forms()->int8();
  on_device(form.values.context(), [&](auto& ctx) {
    if constexpr (kernels::kPacks<std::remove_cvref_t<decltype(ctx)>>) {
      kernels::run(ctx, kernels::QuantizeMatrix{.n = n,
                                                .k = k,
                                                .first = first,
                                                .count = count,
                                                .w = rows.data(),
                                                .values = form.values.data<std::uint8_t>(),
                                                .scales = form.scales.data<float>()});
    }
  });
}

const ParameterEntry* Parameters::find(const std::string& name) const {
  const auto found = indices_.find(name);
  return found == indices_.end() ? nullptr : &entries_[found->second];
}

std::int64_t Parameters::count() const {
  std::int64_t count = 0;
  for (const ParameterEntry& entry : entries_) count += entry.shape.elements();
  return count;
}

}  // namespace nunchi::nn
