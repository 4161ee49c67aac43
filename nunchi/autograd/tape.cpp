#include "nunchi/autograd/tape.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "nunchi/base/error.h"
#include "nunchi/kernels/memory.h"
#include "nunchi/kernels/reduce.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

ContextBase* context_of(std::initializer_list<Variable> inputs) {
  for (const Variable& input : inputs) {
    if (input.defined()) return &input.value().context();
  }
  return nullptr;
}

bool any_needs_gradient(std::initializer_list<Variable> inputs) {
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const Variable& input) { return input.needs_gradient(); });
}

void add_into(const Tensor& x, const Tensor& out) {
  dispatch(x, [&]<class T>(auto& ctx) {
    const std::int64_t width = x.shape().dimensions() == 0 ? 1 : x.size(x.shape().dimensions() - 1);
    kernels::run(ctx, kernels::AddInto<T>{.rows = width == 0 ? 0 : x.elements() / width,
                                          .width = width,
                                          .x = x.data<T>(),
                                          .x_stride = x.row_stride(),
                                          .out = out.data<T>(),
                                          .out_stride = out.row_stride()});
  });
}

Tensor empty_like(const Tensor& x) { return Tensor::empty(x.context(), x.dtype(), x.shape()); }

void set_zero(const Tensor& x) {
  dispatch(x, [&]<class T>(auto& ctx) {
    const bool contiguous = x.contiguous();
    kernels::run(ctx, kernels::Fill<T>{.count = contiguous ? x.elements() : x.size(1),
                                       .out = x.data<T>(),
                                       .rows = contiguous ? 1 : x.size(0),
                                       .stride = x.row_stride()});
  });
}

Tensor copy_of(const Tensor& x) {
  Tensor copy = Tensor::empty(x.context(), x.dtype(), x.shape());
  dispatch(x, [&]<class T>(auto& ctx) {
    kernels::run(ctx,
                 kernels::CopyBytes{.bytes = x.bytes(), .from = x.data<T>(), .to = copy.data<T>()});
  });
  return copy;
}

template <class Context>
void copy_to_host(Context& ctx, const double* from, double& to) {
  kernels::run(ctx, kernels::CopyBytes{.direction = kernels::CopyBytes::Direction::to_host,
                                       .bytes = sizeof to,
                                       .from = from,
                                       .to = &to});
}

// A contiguous copy of a view of columns.
Tensor copy_of_columns(const Tensor& x) {
  const Tensor copy = empty_like(x);
  set_zero(copy);
  add_into(x, copy);
  return copy;
}

// The gradient that an operation has computed for one of its inputs, a node. While only views have
// written a gradient, the result is the input's columns: the others may be uninitialised.
Tensor computed_gradient(const auto& input) {
  const auto& owner = input.parent != nullptr ? *input.parent : input;
  if (!owner.gradient.defined() || !owner.by_columns) return owner.gradient;
  return owner.gradient.columns(input.first_column, input.value.size(1));
}

// The sum of squares is finite if and only if all numbers are: the square of any f32 fits in f64.
bool all_finite(const Tensor& x) {
  if (x.elements() == 0) return true;
  double sum = 0;
  if (x.dtype() == DType::f64 && x.elements() == 1) {  // a loss
    on_device(x.context(), [&](auto& ctx) { copy_to_host(ctx, x.data<double>(), sum); });
    return std::isfinite(sum);
  }
  const Tensor device_sum = Tensor::empty(x.context(), DType::f64, {1});
  dispatch(x, [&]<class T>(auto& ctx) {
    const std::int64_t rows = x.contiguous() ? 1 : x.size(0);
    for (std::int64_t r = 0; r < rows && std::isfinite(sum); ++r) {
      kernels::run(ctx, kernels::Sum<T>{.count = x.elements() / rows,
                                        .squares = true,
                                        .x = x.data<T>() + r * x.row_stride(),
                                        .out = device_sum.data<double>()});
      copy_to_host(ctx, device_sum.data<double>(), sum);
    }
  });
  return std::isfinite(sum);
}

NotFinite not_finite(const char* operation, std::size_t number, Tape::Pass pass,
                     const Tensor& result) {
  return NotFinite(std::string(operation) + " (operation " + std::to_string(number) + " of the " +
                   (pass == Tape::Pass::forward ? "forward" : "backward") +
                   " pass) computed a tensor of shape " + result.shape().to_string() +
                   " with numbers that are not finite");
}

}  // namespace

// Returns whether the columns still have to be written for the first time, and marks them as
// written.
bool Gradients::claim_columns(Node& node, std::int64_t begin, std::int64_t end) {
  if (!node.by_columns) return false;
  auto& columns = node.written_columns;
  const auto contains = [&](const auto& range) {
    return range.first <= begin && end <= range.second;
  };
  if (std::any_of(columns.begin(), columns.end(), contains)) return false;
  const auto is_disjoint = [&](const auto& range) {
    return range.second <= begin || end <= range.first;
  };
  if (!std::all_of(columns.begin(), columns.end(), is_disjoint)) {
    complete(node);
    return false;
  }
  columns.emplace_back(begin, end);
  return true;
}

// Sets the columns that no view has written to zero.
void Gradients::complete(Node& node) {
  if (!node.by_columns) return;
  auto& columns = node.written_columns;
  columns.emplace_back(node.value.size(1), node.value.size(1));
  std::sort(columns.begin(), columns.end());
  std::int64_t end = 0;
  for (const auto& [begin, next] : columns) {
    if (begin > end) set_zero(node.gradient.columns(end, begin - end));
    end = std::max(end, next);
  }
  columns.clear();
  node.by_columns = false;
}

const Tensor& Gradients::output(int i) const {
  return outputs_[static_cast<std::size_t>(i)]->gradient;
}

bool Gradients::wanted(int input) const {
  const auto& node = inputs_[static_cast<std::size_t>(input)];
  return node != nullptr && node->needs_gradient;
}

GradientTarget Gradients::target(int input) {
  Node& node = *inputs_[static_cast<std::size_t>(input)];
  if (!node.needs_gradient) return {empty_like(node.value), false};
  Node& owner = node.parent != nullptr ? *node.parent : node;
  // Other owners of a gradient may still read it, so it is copied before it is changed. Gradients
  // of parameters, and those that this operation has already claimed, are changed in place.
  const bool in_place =
      owner.bound || std::find(claimed_.begin(), claimed_.end(), &owner) != claimed_.end();
  if (owner.gradient.defined() && !in_place && !owner.gradient.sole_owner()) {
    owner.gradient = copy_of(owner.gradient);
  }
  claimed_.push_back(&owner);
  if (node.parent != nullptr) {
    if (!owner.gradient.defined()) {
      owner.gradient = empty_like(owner.value);
      owner.written = owner.by_columns = true;
    }
    const std::int64_t begin = node.first_column, count = node.value.size(1);
    return {owner.gradient.columns(begin, count), !claim_columns(owner, begin, begin + count)};
  }
  complete(node);
  if (!node.gradient.defined()) node.gradient = empty_like(node.value);
  return {node.gradient, std::exchange(node.written, true)};
}

Tensor Gradients::sum(int input) {
  const GradientTarget gradient = target(input);
  if (!gradient.accumulate) set_zero(gradient.tensor);
  return gradient.tensor;
}

void Gradients::give(int input, Tensor gradient) {
  Node& node = *inputs_[static_cast<std::size_t>(input)];
  if (!node.needs_gradient) return;
  if (node.parent == nullptr && !node.gradient.defined()) {
    node.gradient = std::move(gradient);
    node.written = true;
    return;
  }
  add_into(gradient, sum(input));
}

Tape::Tape(ContextBase& context, const TapeOptions& options)
    : context_(context), options_(options) {
  if (context.tape() != nullptr)
    throw Error("this context is recording already; tapes do not nest.");
  context.set_tape(this);
}

Tape::~Tape() { context_.set_tape(nullptr); }

void Tape::add(const char* name, const std::vector<Variable>& outputs,
               std::initializer_list<Variable> inputs, Backward backward) {
  Record record{.name = name, .outputs = {}, .inputs = {}, .backward = std::move(backward)};
  for (const Variable& output : outputs) record.outputs.push_back(output.node_);
  for (const Variable& input : inputs) record.inputs.push_back(input.node_);
  records_.push_back(std::move(record));
  if (observer_) {
    for (const Variable& output : outputs) {
      observer_(Pass::forward, records_.size(), name, output.value());
    }
  }
  if (!options_.check_finite) return;
  check_outputs(records_.back(), records_.size());
  // An operation may compute the gradient of a parameter in the forward pass.
  check_gradients(records_.back(), records_.size(), Pass::forward);
}

void Tape::check_outputs(const Record& record, std::size_t number) {
  for (const auto& output : record.outputs) {
    if (!all_finite(output->value))
      throw not_finite(record.name, number, Pass::forward, output->value);
  }
}

void Tape::check_gradients(const Record& record, std::size_t number, Pass pass) {
  for (const auto& input : record.inputs) {
    if (input == nullptr || !input->needs_gradient) continue;
    const Variable::Node& owner = input->parent != nullptr ? *input->parent : *input;
    if (!owner.written || !owner.gradient.defined()) continue;
    const Tensor gradient = computed_gradient(*input);
    if (all_finite(gradient.contiguous() ? gradient : copy_of_columns(gradient))) continue;
    throw not_finite(record.name, number, pass, gradient);
  }
}

void Tape::observe_gradients(const Record& record, std::size_t number) const {
  for (const auto& input : record.inputs) {
    if (input == nullptr || !input->needs_gradient) continue;
    const Tensor gradient = computed_gradient(*input);
    if (gradient.defined()) observer_(Pass::backward, number, record.name, gradient);
  }
}

void Tape::backward(const Variable& loss) { backward(loss, Tensor()); }

void Tape::backward(const Variable& output, Tensor gradient) {
  if (!output.needs_gradient()) throw Error("no recorded operation leads to this loss.");
  if (output.node_->parent != nullptr) throw Error("the backward pass cannot start at a view.");
  if (gradient.defined() &&
      (gradient.shape() != output.value().shape() || gradient.dtype() != output.value().dtype())) {
    throw Error("a gradient of shape " + gradient.shape().to_string() +
                " does not fit an output of shape " + output.value().shape().to_string() + ".");
  }
  output.node_->gradient = std::move(gradient);
  output.node_->written = true;
  while (!records_.empty()) {
    Record record = std::move(records_.back());
    records_.pop_back();
    bool reached = false;
    for (const auto& node : record.outputs) reached = reached || node->written;
    if (reached) {
      for (const auto& node : record.outputs) Gradients::complete(*node);
      Gradients gradients(record.outputs, record.inputs);
      record.backward(gradients);
      if (observer_) observe_gradients(record, records_.size() + 1);
      if (options_.check_finite) check_gradients(record, records_.size() + 1, Pass::backward);
    }
  }
}

bool recording(std::initializer_list<Variable> inputs) {
  const ContextBase* context = context_of(inputs);
  return context != nullptr && context->tape() != nullptr && any_needs_gradient(inputs);
}

std::vector<Variable> record(const char* name, std::vector<Tensor> outputs,
                             std::initializer_list<Variable> inputs, Backward backward) {
  Tape* const tape = outputs.front().context().tape();
  const bool recorded = tape != nullptr && any_needs_gradient(inputs);
  std::vector<Variable> results;
  results.reserve(outputs.size());
  for (Tensor& output : outputs) results.emplace_back(std::move(output), recorded);
  if (recorded) tape->add(name, results, inputs, std::move(backward));
  return results;
}

Variable record(const char* name, Tensor output, std::initializer_list<Variable> inputs,
                Backward backward) {
  return record(name, std::vector<Tensor>{std::move(output)}, inputs, std::move(backward)).front();
}

}  // namespace nunchi
