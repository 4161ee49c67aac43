#include "nunchi/ops/embedding.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/kernels/embedding.h"
#include "nunchi/ops/check.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {

Variable embedding(const Tensor& ids, const Ragged& batch, const Embedding& parameters) {
  const Variable &table = parameters.table, &positions = parameters.positions;
  const Tensor& w = table.value();
  check_shape("embedding", "ids", ids, {batch.capacity});
  if (positions.defined()) {
    check(positions.value().size(0) >= batch.max_length && positions.value().size(1) == w.size(1),
          "embedding",
          "positions of shape " + positions.value().shape().to_string() + " do not reach " +
              std::to_string(batch.max_length));
  }
  const kernels::Dropout draws = dropout_on(w.context(), parameters.dropout);
  const Tensor out = Tensor::empty(w.context(), w.dtype(), {batch.capacity, w.size(1)});
  dispatch(w, [&]<class T>(auto& ctx) {
    kernels::run(ctx, kernels::Embedding<T>{
                          .rows = rows_of(batch),
                          .width = w.size(1),
                          .scale = parameters.scale,
                          .dropout = draws,
                          .ids = ids.data<std::int32_t>(),
                          .table = w.data<T>(),
                          .positions = positions.defined() ? positions.value().data<T>() : nullptr,
                          .out = out.data<T>()});
  });
  return record("embedding", out, {table, positions},
                [ids, batch, scale = parameters.scale, draws](Gradients& d) {
                  const Tensor& d_out = d.of_output();
                  dispatch(d_out, [&]<class T>(auto& ctx) {
                    const auto data = [&](int input) {
                      return d.wanted(input) ? d.sum(input).template data<Summed<T>>() : nullptr;
                    };
                    kernels::run(ctx, kernels::EmbeddingBackward<T>{.rows = rows_of(batch),
                                                                    .width = d_out.size(1),
                                                                    .scale = scale,
                                                                    .dropout = draws,
                                                                    .ids = ids.data<std::int32_t>(),
                                                                    .d_out = d_out.data<T>(),
                                                                    .d_table = data(0),
                                                                    .d_positions = data(1)});
                  });
                });
}

}  // namespace nunchi
