#include "nunchi/ops/recurrent.h"

#include <algorithm>
#include <numeric>

#include "nunchi/ops/check.h"
#include "nunchi/ops/products.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

// Sentences sorted by length, longest first, and the number of sentences with a token in each step.
struct Plan {
  std::vector<std::int64_t> active;
  Tensor sentence, begin, length;  // i32 [B]

  Plan(ContextBase& context, const Ragged& batch) {
    const auto sentences = static_cast<std::size_t>(batch.sentences);
    std::vector<std::int32_t> order(sentences), indices(3 * sentences), first(sentences);
    std::iota(order.begin(), order.end(), 0);
    const auto length_of = [&](std::int32_t b) { return batch.lengths[std::size_t(b)]; };
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return length_of(a) > length_of(b); });
    std::exclusive_scan(batch.lengths.begin(), batch.lengths.end(), first.begin(), 0);
    for (std::size_t i = 0; i < sentences; ++i) {
      indices[i] = order[i];
      indices[sentences + i] = first[std::size_t(order[i])];
      indices[2 * sentences + i] = length_of(order[i]);
    }
    std::int64_t active_count = batch.sentences;
    for (std::int64_t t = 0; t < batch.max_length; ++t) {
      while (length_of(order[std::size_t(active_count - 1)]) <= t) --active_count;
      active.push_back(active_count);
    }
    const Tensor tensor = from_host(context, indices, {3 * batch.sentences});
    sentence = tensor.flat_slice(0, {batch.sentences});
    begin = tensor.flat_slice(batch.sentences, {batch.sentences});
    length = tensor.flat_slice(2 * batch.sentences, {batch.sentences});
  }

  kernels::RecurrentPlan view() const {
    return {.sentences = sentence.size(0),
            .steps = static_cast<std::int64_t>(active.size()),
            .active = active.data(),
            .sentence = sentence.data<std::int32_t>(),
            .begin = begin.data<std::int32_t>(),
            .length = length.data<std::int32_t>()};
  }
};

template <class T>
T* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.data<T>() : nullptr;
}

Tensor value_of(const Variable& variable) {
  return variable.defined() ? variable.value() : Tensor();
}

// A direction's columns of a matrix [rows, D · width].
Tensor direction_columns(const Tensor& matrix, int direction, std::int64_t width) {
  return matrix.defined() ? matrix.columns(direction * width, width) : Tensor();
}

// Tensors of one direction that are saved for the backward pass; see kernels::RecurrentInputs.
struct Saved {
  Tensor previous;  // [capacity + spare, H]
  Tensor kept;      // [capacity + spare, H]
};

// Arguments and tensors that the forward and the backward pass share.
struct Run {
  RecurrentLayer layer;
  Ragged batch;
  Plan plan;
  Tensor x, gates, initial_h, initial_c;
  std::array<Saved, 2> saved;

  std::int64_t gate_columns() const { return layer.hidden[0].weight.value().size(0); }
  std::int64_t width() const { return layer.hidden[0].weight.value().size(1); }
  int directions() const { return layer.hidden[1].weight.defined() ? 2 : 1; }

  template <class T>
  kernels::RecurrentInputs<T> inputs(int d, const ProductWeight& weight) const {
    const Tensor columns = direction_columns(gates, d, gate_columns());
    const Tensor h = direction_columns(initial_h, d, width()),
                 c = direction_columns(initial_c, d, width());
    const Saved& direction = saved[std::size_t(d)];
    return {.cell = layer.cell,
            .reverse = d == 1,
            .width = width(),
            .plan = plan.view(),
            .rows = rows_of(batch),
            .gates = columns.data<T>(),
            .gates_stride = columns.row_stride(),
            .product = product_of<T, Accumulator<T>>(weight, {}, {}),
            .initial_h = data_or_null<T>(h),
            .initial_c = data_or_null<Accumulator<T>>(c),
            .state_stride = directions() * width(),
            .previous_h = direction.previous.data<T>(),
            .saved = direction.kept.data<Accumulator<T>>()};
  }
};

void check_layer(const Variable& x, const RecurrentLayer& layer) {
  const char* const name = "recurrent";
  const Tensor& hidden = layer.hidden[0].weight.value();
  const std::int64_t width = hidden.size(1), gates = kernels::gates_of(layer.cell) * width;
  const int directions = layer.hidden[1].weight.defined() ? 2 : 1;
  for (int d = 0; d < directions; ++d) {
    const Linear& hidden_layer = layer.hidden[std::size_t(d)];
    check_shape(name, "a hidden weight", hidden_layer.weight.value(), {gates, width});
    check_shape(name, "a hidden bias", hidden_layer.bias.value(), {gates});
  }
  check_shape(name, "the input weight", layer.input.weight.value(),
              {directions * gates, x.value().size(1)});
  check_shape(name, "the input bias", layer.input.bias.value(), {directions * gates});
}

// a = x · W_ihᵀ + b_ih of all rows and directions.
Tensor input_gates(const Tensor& x, const Linear& input) {
  const Tensor& w = input.weight.value();
  const Tensor gates = Tensor::empty(x.context(), w.dtype(), {x.size(0), w.size(0)});
  multiply(x, forward_weight(x.context(), input.weight), gates,
           {.bias = input.bias.value(), .label = "recurrent_input"});
  return gates;
}

Saved allocate_saved(const Run& run) {
  ContextBase& context = run.x.context();
  const Shape shape{run.batch.capacity + kernels::kSpareRows, run.width()};
  return {.previous = Tensor::empty(context, run.x.dtype(), shape),
          .kept = Tensor::empty(context, accumulator_type(run.x.dtype()), shape)};
}

// Indices of the operation's inputs. From kHidden on: weight and bias of each direction.
enum Input { kX, kInputWeight, kInputBias, kInitialH, kInitialC, kHidden };

void run_backward(Run& run, Gradients& gradients) {
  const std::int64_t width = run.width(), gates = run.gate_columns();
  ContextBase& context = run.x.context();
  const Tensor d_out = gradients.output(0), d_last_h = gradients.output(1),
               d_last_c = run.layer.cell == CellKind::lstm ? gradients.output(2) : Tensor();
  const auto state_like = [&](int input, DType dtype) {
    return gradients.wanted(input)
               ? Tensor::empty(context, dtype, {run.batch.sentences, run.directions() * width})
               : Tensor();
  };
  const Tensor d_initial_h = state_like(kInitialH, run.x.dtype()),
               d_initial_c = state_like(kInitialC, accumulator_type(run.x.dtype()));
  for (int i = 0; i < run.directions(); ++i) {
    const Variable& weight = run.layer.hidden[std::size_t(i)].weight;
    const Tensor d_b =
        Tensor::empty(context, run.x.dtype(), {run.batch.capacity + kernels::kSpareRows, gates});
    const Tensor direction_d_out = direction_columns(d_out, i, width);
    const ProductWeight packed = backward_weight(context, weight);
    dispatch(run.x, [&]<class T>(auto& ctx) {
      kernels::run(
          ctx, kernels::RecurrenceBackward<T>{
                   .in = run.inputs<T>(i, packed),
                   .d_out = data_or_null<T>(direction_d_out),
                   .d_out_stride = direction_d_out.defined() ? direction_d_out.row_stride() : 0,
                   .d_last_h = data_or_null<T>(direction_columns(d_last_h, i, width)),
                   .d_last_c = data_or_null<Accumulator<T>>(direction_columns(d_last_c, i, width)),
                   .d_b = d_b.data<T>(),
                   .d_initial_h = data_or_null<T>(direction_columns(d_initial_h, i, width)),
                   .d_initial_c =
                       data_or_null<Accumulator<T>>(direction_columns(d_initial_c, i, width))});
    });
    add_linear_gradients(gradients, kHidden + 2 * i, d_b.rows(0, run.batch.capacity),
                         run.saved[std::size_t(i)].previous.rows(0, run.batch.capacity));
    run.saved[std::size_t(i)] = {};
  }
  if (d_initial_h.defined()) gradients.add(kInitialH, d_initial_h);
  if (d_initial_c.defined()) gradients.add(kInitialC, d_initial_c);
  if (gradients.wanted(kX)) {
    const GradientTarget d_x = gradients.target(kX);
    multiply(run.gates, backward_weight(context, run.layer.input.weight), d_x.tensor,
             {.accumulate = d_x.accumulate, .label = "recurrent_backward_input"});
  }
  add_linear_gradients(gradients, kInputWeight, run.gates, run.x);
}

}  // namespace

RecurrentResult recurrent(const Variable& x, const RecurrentLayer& layer, const Ragged& batch,
                          const RecurrentState& initial) {
  check_layer(x, layer);
  check(x.value().contiguous(), "recurrent", "x must not be a view of columns");
  check_shape("recurrent", "x", x.value(), {batch.capacity, x.value().size(1)});
  ContextBase& context = x.value().context();
  const DType dtype = x.value().dtype();
  Run run{.layer = layer,
          .batch = batch,
          .plan = Plan(context, batch),
          .x = x.value(),
          .gates = input_gates(x.value(), layer.input),
          .initial_h = value_of(initial.h),
          .initial_c = value_of(initial.c),
          .saved = {}};
  const std::int64_t width = run.width(), columns = run.directions() * width;
  const bool lstm = layer.cell == CellKind::lstm;
  for (const Tensor* state : {&run.initial_h, &run.initial_c}) {
    if (state->defined()) check_shape("recurrent", "a state", *state, {batch.sentences, columns});
  }
  std::vector<Tensor> outputs = {Tensor::empty(context, dtype, {batch.capacity, columns}),
                                 Tensor::empty(context, dtype, {batch.sentences, columns})};
  if (lstm)
    outputs.push_back(Tensor::empty(context, accumulator_type(dtype), {batch.sentences, columns}));
  for (int i = 0; i < run.directions(); ++i) {
    const Linear& hidden = layer.hidden[std::size_t(i)];
    run.saved[std::size_t(i)] = allocate_saved(run);
    const ProductWeight packed = forward_weight(context, hidden.weight);
    const Tensor out = direction_columns(outputs[0], i, width);
    dispatch(out, [&]<class T>(auto& ctx) {
      kernels::run(
          ctx,
          kernels::Recurrence<T>{
              .in = run.inputs<T>(i, packed),
              .bias = hidden.bias.value().template data<T>(),
              .out = out.data<T>(),
              .out_stride = out.row_stride(),
              .last_h = direction_columns(outputs[1], i, width).template data<T>(),
              .last_c =
                  lstm ? direction_columns(outputs[2], i, width).template data<Accumulator<T>>()
                       : nullptr});
    });
  }
  const std::vector<Variable> results = record(
      "recurrent", std::move(outputs),
      {x, layer.input.weight, layer.input.bias, initial.h, initial.c, layer.hidden[0].weight,
       layer.hidden[0].bias, layer.hidden[1].weight, layer.hidden[1].bias},
      [run = std::move(run)](Gradients& gradients) mutable { run_backward(run, gradients); });
  return {results[0], {results[1], lstm ? results[2] : Variable()}};
}

void recurrent_step(const Tensor& x, const RecurrentLayer& layer, const Ragged& rows,
                    const StateRows& previous, const StateRows& next) {
  check_layer(Variable(x), layer);
  const Tensor& w = layer.hidden[0].weight.value();
  const std::int64_t width = w.size(1), active = rows.capacity;
  ContextBase& context = x.context();
  const Tensor gates = input_gates(x, layer.input);
  const Shape shape{rows.capacity + kernels::kSpareRows, width};
  const Tensor previous_h = Tensor::empty(context, x.dtype(), shape);
  const Tensor kept = Tensor::empty(context, accumulator_type(x.dtype()), shape);
  const ProductWeight weight = forward_weight(context, layer.hidden[0].weight);
  dispatch(x, [&]<class T>(auto& ctx) {
    kernels::run(ctx, kernels::Recurrence<T>{
                          .in = {.cell = layer.cell,
                                 .width = width,
                                 .plan = {.sentences = active, .steps = 1, .active = &active},
                                 .rows = rows_of(rows),
                                 .gates = gates.data<T>(),
                                 .gates_stride = gates.row_stride(),
                                 .product = product_of<T, Accumulator<T>>(weight, {}, {}),
                                 .initial_h = previous.h.data<T>(),
                                 .initial_c = data_or_null<Accumulator<T>>(previous.c),
                                 .state_stride = width,
                                 .previous_h = previous_h.data<T>(),
                                 .saved = kept.data<Accumulator<T>>()},
                          .bias = layer.hidden[0].bias.value().template data<T>(),
                          .out = next.h.data<T>(),
                          .out_stride = next.h.row_stride(),
                          .last_c = data_or_null<Accumulator<T>>(next.c)});
  });
}

}  // namespace nunchi
