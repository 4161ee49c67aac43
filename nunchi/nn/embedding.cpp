#include "nunchi/nn/embedding.h"

#include <cmath>

#include "nunchi/autograd/tape.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/trace/trace.h"

namespace nunchi::nn {

Embedding::Embedding(Parameters& parameters, Variable table, const Options& options)
    : table_(std::move(table)),
      scale_(options.scaled ? std::sqrt(static_cast<double>(options.width)) : 1),
      dropout_{options.dropout, parameters.next_operation_id()} {}

nunchi::Embedding Embedding::parameters(const Tensor& ids, const Ragged& batch,
                                        const Position& position) const {
  return {.table = table_,
          .scale = scale_,
          .positions = position.embed(ids.context(), batch.max_length),
          .dropout = dropout_};
}

Variable Embedding::operator()(const Tensor& ids, const Ragged& batch, const Position& position,
                               std::string_view stack) const {
  if (ids.context().trace() != nullptr) trace(ids, batch, position, stack);
  return embedding(ids, batch, parameters(ids, batch, position));
}

Variable Embedding::step(const Tensor& ids, const Ragged& rows, const Position& position,
                         const kernels::ExtendSlots& slots) const {
  const Variable embedded(embed_step(ids, rows, parameters(ids, rows, position), slots));
  // The kernel has set the positions of the rows.
  if (ids.context().trace() != nullptr) trace(ids, rows, position, "decoder");
  return embedded;
}

void Embedding::trace(const Tensor& ids, const Ragged& batch, const Position& position,
                      std::string_view stack) const {
  const TapePause pause(ids.context());
  const Variable tokens = embedding(ids, batch, {.table = table_, .scale = scale_});
  write_to_trace(Tap::token_embedding, {stack, -1, ""}, tokens.value(), batch);
  trace_positions(ids.context(), batch, position, stack);
}

void trace_positions(ContextBase& context, const Ragged& batch, const Position& position,
                     std::string_view stack) {
  const Variable table = position.embed(context, batch.max_length);
  if (!table.defined()) return;
  // Positions are added to rows of zeros.
  const TapePause pause(context);
  const Tensor rows =
      zeros(context, table.value().dtype(), {batch.capacity, table.value().size(1)});
  write_to_trace(Tap::position, {stack, -1, ""},
                 add_positions(Variable(rows), batch, table, {}).value(), batch);
}

}  // namespace nunchi::nn
