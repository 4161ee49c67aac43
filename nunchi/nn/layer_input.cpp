#include "nunchi/nn/layer_input.h"

#include "nunchi/ops/tensors.h"

namespace nunchi::nn {

void write_to_trace(Tap tap, const TapLocation& location, const Variable& rows,
                    const LayerInput& in) {
  nunchi::write_to_trace(tap, location, rows.value(), in.rows);
}

void write_to_trace(Tap tap, const TapLocation& location, const Branch& branch,
                    const LayerInput& in) {
  if (branch.context().trace() == nullptr) return;
  nunchi::write_to_trace(tap, location, branch.peek(), in.rows);
}

void write_to_trace(Tap tap, const TapLocation& location, const ResidualStream& stream,
                    const LayerInput& in) {
  if (stream.value.value().context().trace() == nullptr) return;
  nunchi::write_to_trace(tap, location, peek(stream, in.rows).rows, in.rows);
}

TraceStep::TraceStep(const StepTokens& tokens) : trace_(tokens.ids.context().trace()) {
  if (trace_ == nullptr) return;
  TapGroups groups{.sentences = to_host<std::int32_t>(tokens.units)};
  groups.sentences.resize(static_cast<std::size_t>(tokens.hypotheses));
  groups.lengths.assign(groups.sentences.size(), 1);
  if (tokens.offsets.defined()) {
    const std::vector<std::int32_t> offsets = to_host<std::int32_t>(tokens.offsets);
    for (std::size_t i = 0; i < groups.lengths.size(); ++i) {
      groups.lengths[i] = offsets[i + 1] - offsets[i];
    }
  }
  // The hypotheses of a unit are adjacent.
  for (std::size_t i = 0; i < groups.sentences.size(); ++i) {
    const bool same_unit = i > 0 && groups.sentences[i] == groups.sentences[i - 1];
    groups.hypotheses.push_back(same_unit ? groups.hypotheses.back() + 1 : 0);
  }
  trace_->begin_step(std::move(groups));
}

TraceStep::~TraceStep() {
  if (trace_ != nullptr) trace_->end_step();
}

}  // namespace nunchi::nn
