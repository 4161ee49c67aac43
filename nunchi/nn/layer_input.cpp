#include "nunchi/nn/layer_input.h"

namespace nunchi::nn {
namespace {

bool traced(const ContextBase& context, const LayerInput& in) {
  return in.step == nullptr && context.trace() != nullptr;
}

}  // namespace

void tap(Tap tap, const TapLocation& location, const Variable& rows, const LayerInput& in) {
  if (traced(rows.value().context(), in)) nunchi::tap(tap, location, rows.value(), in.rows);
}

void tap(Tap tap, const TapLocation& location, Branch& branch, const LayerInput& in) {
  if (traced(branch.context(), in)) nunchi::tap(tap, location, branch.rows().value(), in.rows);
}

void tap(Tap tap, const TapLocation& location, ResidualStream& stream, const LayerInput& in) {
  if (!traced(stream.value.value().context(), in)) return;
  nunchi::tap(tap, location, traced_rows(stream, in.rows).value(), in.rows);
}

}  // namespace nunchi::nn
