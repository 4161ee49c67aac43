#include "nunchi/autograd/tape.h"

#include <string>
#include <utility>

#include "nunchi/base/error.h"
#include "nunchi/kernels/memory.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

ContextBase* context_of(std::initializer_list<Variable> inputs) {
  for (const Variable& input : inputs) {
    if (input.defined()) return &input.value().context();
  }
  return nullptr;
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

Tensor zeros_like(const Tensor& x) {
  Tensor zeros = Tensor::empty(x.context(), x.dtype(), x.shape());
  dispatch(zeros, [&]<class T>(auto& ctx) {
    kernels::run(ctx, kernels::Fill<T>{.count = zeros.elements(), .out = zeros.data<T>()});
  });
  return zeros;
}

Tensor copy_of(const Tensor& x) {
  Tensor copy = Tensor::empty(x.context(), x.dtype(), x.shape());
  dispatch(x, [&]<class T>(auto& ctx) {
    kernels::run(ctx,
                 kernels::CopyBytes{.bytes = x.bytes(), .from = x.data<T>(), .to = copy.data<T>()});
  });
  return copy;
}

}  // namespace

const Tensor& Gradients::of_output(int i) const {
  return outputs_[static_cast<std::size_t>(i)]->gradient;
}

bool Gradients::wanted(int input) const {
  const auto& node = inputs_[static_cast<std::size_t>(input)];
  return node != nullptr && node->needs_gradient;
}

GradientTarget Gradients::into(int input) {
  Node& node = *inputs_[static_cast<std::size_t>(input)];
  if (node.parent != nullptr) {
    // Columns that no view writes to must be zero, so views always add.
    Node& parent = *node.parent;
    if (!parent.gradient.defined()) parent.gradient = zeros_like(parent.value);
    parent.written = true;
    return {parent.gradient.columns(node.first_column, node.value.size(1)), true};
  }
  if (!node.gradient.defined()) {
    node.gradient = Tensor::empty(node.value.context(), node.value.dtype(), node.value.shape());
  } else if (node.version == nullptr && !node.gradient.sole_owner()) {
    // Someone else still reads this gradient; only a parameter's is a view that is ours to add to.
    node.gradient = copy_of(node.gradient);
  }
  return {node.gradient, std::exchange(node.written, true)};
}

void Gradients::give(int input, Tensor gradient) {
  Node& node = *inputs_[static_cast<std::size_t>(input)];
  if (node.parent == nullptr && !node.gradient.defined()) {
    node.gradient = std::move(gradient);
    node.written = true;
    return;
  }
  add_into(gradient, into(input).tensor);
}

Tape::Tape(ContextBase& context) : context_(context) {
  if (context.tape() != nullptr) throw Error("this context is recording already.");
  context.set_tape(this);
}

Tape::~Tape() { context_.set_tape(nullptr); }

void Tape::add(const char* name, const std::vector<Variable>& outputs,
               std::initializer_list<Variable> inputs, Backward backward) {
  Record record{.name = name, .outputs = {}, .inputs = {}, .backward = std::move(backward)};
  for (const Variable& output : outputs) record.outputs.push_back(output.node_);
  for (const Variable& input : inputs) record.inputs.push_back(input.node_);
  records_.push_back(std::move(record));
}

void Tape::backward(const Variable& loss) { backward(loss, Tensor()); }

void Tape::backward(const Variable& output, Tensor gradient) {
  if (!output.needs_gradient()) throw Error("nothing was recorded that leads to this loss.");
  output.node_->gradient = std::move(gradient);
  output.node_->written = true;
  while (!records_.empty()) {
    Record record = std::move(records_.back());
    records_.pop_back();
    bool reached = false;
    for (const auto& output : record.outputs) reached = reached || output->written;
    if (reached) {
      Gradients gradients(record.outputs, record.inputs);
      record.backward(gradients);
    }
  }
}

bool recording(std::initializer_list<Variable> inputs) {
  const ContextBase* context = context_of(inputs);
  if (context == nullptr || context->tape() == nullptr) return false;
  for (const Variable& input : inputs) {
    if (input.needs_gradient()) return true;
  }
  return false;
}

std::vector<Variable> record(const char* name, std::vector<Tensor> outputs,
                             std::initializer_list<Variable> inputs, Backward backward) {
  const bool recorded = recording(inputs);
  std::vector<Variable> results;
  results.reserve(outputs.size());
  for (Tensor& output : outputs) results.emplace_back(std::move(output), recorded);
  if (recorded) context_of(inputs)->tape()->add(name, results, inputs, std::move(backward));
  return results;
}

Variable record(const char* name, Tensor output, std::initializer_list<Variable> inputs,
                Backward backward) {
  return record(name, std::vector<Tensor>{std::move(output)}, inputs, std::move(backward)).front();
}

}  // namespace nunchi
