#include "nunchi/ops/embedding.h"

#include <numeric>
#include <vector>

#include "nunchi/autograd/tape.h"
#include "nunchi/kernels/step_rows.h"
#include "nunchi/ops/check.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

void check_embedding(const Tensor& ids, const Ragged& batch, const Embedding& parameters) {
  const Variable& positions = parameters.positions;
  const Tensor& w = parameters.table.value();
  check_shape("embedding", "ids", ids, {batch.capacity});
  if (positions.defined()) {
    check(positions.value().size(0) >= batch.max_length && positions.value().size(1) == w.size(1),
          "embedding",
          "positions of shape " + positions.value().shape().to_string() +
              " do not fit rows of width " + std::to_string(w.size(1)) + " and sentences of " +
              std::to_string(batch.max_length) + " tokens");
  }
}

// The int8 form of a table that has no other.
kernels::FormedMatrix int8_form(const Variable& table) {
  if (table.value().has_memory() || table.forms() == nullptr) return {};
  const FormedWeight& form = table.forms()->int8();
  return {.form = WeightForm::int8,
          .data = form.values.bytes_begin(),
          .scales = form.scales.data<float>()};
}

template <class T>
kernels::Embedding<T> kernel_of(const Tensor& ids, const Ragged& batch, const Embedding& parameters,
                                const Tensor& out) {
  const Variable &table = parameters.table, &positions = parameters.positions;
  return {.rows = rows_of(batch),
          .width = out.size(1),
          .scale = parameters.scale,
          .dropout = dropout_on(out.context(), parameters.dropout),
          .ids = ids.data<std::int32_t>(),
          .table = table.value().has_memory() ? table.value().data<T>() : nullptr,
          .formed_table = int8_form(table),
          .positions = positions.defined() ? positions.value().data<T>() : nullptr,
          .out = out.data<T>()};
}

}  // namespace

Tensor embed_step(const Tensor& ids, const Ragged& batch, const Embedding& parameters,
                  const kernels::ExtendSlots& slots) {
  const Tensor& w = parameters.table.value();
  check(ids.context().tape() == nullptr, "embed_step",
        "it is inference-only but was called while a tape records");
  check_embedding(ids, batch, parameters);
  const Tensor out = Tensor::empty(ids.context(), w.dtype(), {batch.capacity, w.size(1)});
  dispatch(out, [&]<class T>(auto& ctx) {
    kernels::run(ctx, kernels::StepRows<T>{.slots = slots,
                                           .embedding = kernel_of<T>(ids, batch, parameters, out)});
  });
  return out;
}

Variable embedding(const Tensor& ids, const Ragged& batch, const Embedding& parameters) {
  const Variable &table = parameters.table, &positions = parameters.positions;
  const Tensor& w = table.value();
  check_embedding(ids, batch, parameters);
  const kernels::Dropout kernel_dropout = dropout_on(ids.context(), parameters.dropout);
  const Tensor out = Tensor::empty(ids.context(), w.dtype(), {batch.capacity, w.size(1)});
  dispatch(out, [&]<class T>(auto& ctx) {
    kernels::run(ctx, kernel_of<T>(ids, batch, parameters, out));
  });
  return record("embedding", out, {table, positions},
                [ids, batch, scale = parameters.scale, kernel_dropout](Gradients& gradients) {
                  const Tensor& d_out = gradients.output();
                  dispatch(d_out, [&]<class T>(auto& ctx) {
                    // For bf16 the kernel sums in f32, the type of a parameter's gradient. A table
                    // that is itself computed has a bf16 gradient, so its sums are converted.
                    Tensor sums[2], totals[2];
                    for (const int input : {0, 1}) {
                      if (!gradients.wanted(input)) continue;
                      totals[input] = sums[input] = gradients.sum(input);
                      if (sums[input].dtype() == dtype_of<Accumulator<T>>) continue;
                      sums[input] =
                          zeros(d_out.context(), dtype_of<Accumulator<T>>, totals[input].shape());
                    }
                    const auto data = [&](int input) {
                      return sums[input].defined() ? sums[input].data<Accumulator<T>>() : nullptr;
                    };
                    kernels::run(ctx, kernels::EmbeddingBackward<T>{.rows = rows_of(batch),
                                                                    .width = d_out.size(1),
                                                                    .scale = scale,
                                                                    .dropout = kernel_dropout,
                                                                    .ids = ids.data<std::int32_t>(),
                                                                    .d_out = d_out.data<T>(),
                                                                    .d_table = data(0),
                                                                    .d_positions = data(1)});
                    for (const int input : {0, 1}) {
                      if (sums[input].same_memory(totals[input])) continue;
                      const Tensor rounded = Tensor::empty(d_out.context(), totals[input].dtype(),
                                                           totals[input].shape());
                      convert(sums[input], rounded);
                      gradients.add(input, rounded);
                    }
                  });
                });
}

// An embedding whose table is the rows themselves, each looked up once.
Variable add_positions(const Variable& rows, const Ragged& batch, const Variable& positions,
                       const Dropout& dropout) {
  std::vector<std::int32_t> row_numbers(static_cast<std::size_t>(batch.capacity));
  std::iota(row_numbers.begin(), row_numbers.end(), 0);
  const Tensor ids = from_host(rows.value().context(), row_numbers, {batch.capacity});
  return embedding(ids, batch, {.table = rows, .positions = positions, .dropout = dropout});
}

}  // namespace nunchi
