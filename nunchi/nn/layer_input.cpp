#include "nunchi/nn/layer_input.h"

namespace nunchi::nn {
namespace {

bool is_traced(const ContextBase& context, const LayerInput& in) {
  return in.step == nullptr && context.trace() != nullptr;
}

}  // namespace

void write_to_trace(Tap tap, const TapLocation& location, const Variable& rows,
                    const LayerInput& in) {
  if (is_traced(rows.value().context(), in))
    nunchi::write_to_trace(tap, location, rows.value(), in.rows);
}

void write_to_trace(Tap tap, const TapLocation& location, Branch& branch, const LayerInput& in) {
  if (is_traced(branch.context(), in))
    nunchi::write_to_trace(tap, location, branch.rows().value(), in.rows);
}

void write_to_trace(Tap tap, const TapLocation& location, ResidualStream& stream,
                    const LayerInput& in) {
  if (!is_traced(stream.value.value().context(), in)) return;
  nunchi::write_to_trace(tap, location, traced_rows(stream, in.rows).value(), in.rows);
}

}  // namespace nunchi::nn
