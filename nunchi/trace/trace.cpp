#include "nunchi/trace/trace.h"

#include <algorithm>
#include <array>

#include "nunchi/ops/tensors.h"

namespace nunchi {
namespace {

constexpr std::array<std::string_view, 11> kNames = {"embedding",
                                                     "query",
                                                     "key",
                                                     "value",
                                                     "attention_weights",
                                                     "attention_context",
                                                     "attention_output",
                                                     "feed_forward",
                                                     "layer_output",
                                                     "stack_output",
                                                     "logits"};

std::vector<float> as_floats(const Tensor& values) {
  if (values.dtype() == DType::f32) return to_host<float>(values);
  const std::vector<double> doubles = to_host_f64(values);
  return {doubles.begin(), doubles.end()};
}

TapRecord empty_record(Tap tap, const TapLocation& location) {
  TapRecord record;
  record.tap = tap;
  record.stack = location.stack;
  record.layer = location.layer;
  record.part = location.part;
  return record;
}

}  // namespace

std::string_view name_of(Tap tap) { return kNames[static_cast<std::size_t>(tap)]; }

bool Trace::wants(Tap tap) const {
  return taps_.empty() || std::find(taps_.begin(), taps_.end(), tap) != taps_.end();
}

void Trace::write(Tap tap, const TapLocation& location, const Tensor& values, const Ragged& rows) {
  if (!wants(tap)) return;
  TapRecord record = empty_record(tap, location);
  const Tensor real = values.rows(0, rows.rows);
  record.shape = {real.size(0), real.size(1)};
  record.lengths = rows.lengths;
  record.values = as_floats(real);
  records_.push_back(std::move(record));
}

void Trace::compute_and_write_attention_weights(const TapLocation& location, const Tensor& q,
                                                const Tensor& k, const Ragged& queries,
                                                const Ragged& keys,
                                                const AttentionOptions& options) {
  if (!wants(Tap::attention_weights)) return;
  write_attention_weights(location, nunchi::attention_weights(q, k, queries, keys, options),
                          queries, keys, options.heads);
}

void Trace::write_attention_weights(const TapLocation& location,
                                    const AttentionWeightsResult& weights, const Ragged& queries,
                                    const Ragged& keys, int heads) {
  if (!wants(Tap::attention_weights)) return;
  TapRecord record = empty_record(Tap::attention_weights, location);
  record.shape = {weights.weights.elements()};
  record.lengths = queries.lengths;
  record.key_lengths = keys.lengths;
  record.offsets = weights.begin;
  record.heads = heads;
  record.values = as_floats(weights.weights);
  records_.push_back(std::move(record));
}

const TapRecord* Trace::find(Tap tap, std::string_view stack, int layer,
                             std::string_view part) const {
  for (const TapRecord& record : records_) {
    if (record.tap == tap && record.stack == stack && record.layer == layer &&
        (part.empty() || record.part == part)) {
      return &record;
    }
  }
  return nullptr;
}

TraceScope::TraceScope(ContextBase& context, Trace& trace)
    : context_(context), previous_(context.trace()) {
  context.set_trace(&trace);
}

TraceScope::~TraceScope() { context_.set_trace(previous_); }

void write_to_trace(Tap tap, const TapLocation& location, const Tensor& values,
                    const Ragged& rows) {
  if (Trace* trace = values.context().trace()) trace->write(tap, location, values, rows);
}

}  // namespace nunchi
