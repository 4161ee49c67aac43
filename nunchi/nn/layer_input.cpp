#include "nunchi/nn/layer_input.h"

namespace nunchi::nn {
namespace {

bool traced(const ContextBase& context, const LayerInput& in) {
  return in.step == nullptr && context.trace() != nullptr;
}

}  // namespace

void tap(Tap tap, const TapPlace& place, const Variable& rows, const LayerInput& in) {
  if (traced(rows.value().context(), in)) nunchi::tap(tap, place, rows.value(), in.rows);
}

void tap(Tap tap, const TapPlace& place, Branch& branch, const LayerInput& in) {
  if (traced(branch.context(), in)) nunchi::tap(tap, place, branch.rows().value(), in.rows);
}

void tap(Tap tap, const TapPlace& place, ResidualStream& stream, const LayerInput& in) {
  if (!traced(stream.value.value().context(), in)) return;
  nunchi::tap(tap, place, traced_rows(stream, in.rows).value(), in.rows);
}

}  // namespace nunchi::nn
