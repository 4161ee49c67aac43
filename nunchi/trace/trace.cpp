#include "nunchi/trace/trace.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "nunchi/autograd/tape.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/trace/attention_scores.h"

namespace nunchi {
namespace {

constexpr std::array<std::string_view, 21> kNames = {"token_embedding",
                                                     "position",
                                                     "embedding",
                                                     "query",
                                                     "key",
                                                     "value",
                                                     "scores",
                                                     "scaled_scores",
                                                     "biased_scores",
                                                     "masked_scores",
                                                     "attention_weights",
                                                     "attention_context",
                                                     "weight_gradient",
                                                     "attention_output",
                                                     "feed_forward_hidden",
                                                     "feed_forward",
                                                     "residual_sum",
                                                     "norm_output",
                                                     "layer_output",
                                                     "stack_output",
                                                     "logits"};
static_assert(kNames.size() == static_cast<std::size_t>(Tap::logits) + 1);

constexpr std::array kScoreTaps = {Tap::scores, Tap::scaled_scores, Tap::biased_scores,
                                   Tap::masked_scores};

TapGroups sentences_of(const Ragged& rows) {
  TapGroups groups{.lengths = rows.lengths,
                   .sentences = std::vector<std::int32_t>(rows.lengths.size()),
                   .hypotheses = std::vector<std::int32_t>(rows.lengths.size(), 0)};
  std::iota(groups.sentences.begin(), groups.sentences.end(), 0);
  return groups;
}

// Rows of a matrix on the host.
struct HostRows {
  std::vector<float> values;
  std::int64_t width;

  explicit HostRows(const Tensor& rows) : values(host_floats(rows)), width(rows.size(1)) {}
  const float* operator[](std::int64_t i) const { return values.data() + i * width; }
};

// d loss / d weights = d context · valueᵀ, head by head: [H, queries, keys] of each sentence.
std::vector<float> weight_gradients(const HostRows& d_context, const HostRows& value,
                                    const Ragged& queries, const Ragged& keys, int heads) {
  const std::int64_t head_width = d_context.width / heads,
                     shared_by = heads / (value.width / head_width);
  std::vector<float> gradients;
  std::int64_t first_query = 0, first_key = 0;
  for (std::size_t b = 0; b < queries.lengths.size(); ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t i = 0; i < queries.lengths[b]; ++i) {
        const float* const d = d_context[first_query + i] + h * head_width;
        for (std::int64_t j = 0; j < keys.lengths[b]; ++j) {
          const float* const v = value[first_key + j] + h / shared_by * head_width;
          gradients.push_back(static_cast<float>(std::inner_product(d, d + head_width, v, 0.0)));
        }
      }
    }
    first_query += queries.lengths[b];
    first_key += keys.lengths[b];
  }
  return gradients;
}

}  // namespace

std::string_view name_of(Tap tap) { return kNames[static_cast<std::size_t>(tap)]; }

std::vector<float> host_floats(const Tensor& values) {
  if (values.dtype() == DType::f32) return to_host<float>(values);
  const std::vector<double> doubles = to_host_f64(values);
  return {doubles.begin(), doubles.end()};
}

std::int64_t TapGroups::rows() const {
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
}

bool Trace::wants(Tap tap) const {
  return taps_.empty() || std::find(taps_.begin(), taps_.end(), tap) != taps_.end();
}

bool Trace::wants_scores() const {
  return std::any_of(kScoreTaps.begin(), kScoreTaps.end(), [&](Tap tap) { return wants(tap); });
}

TapGroups Trace::groups_of(const Ragged& rows) const {
  return in_step_ ? step_groups_ : sentences_of(rows);
}

TapRecord& Trace::add_record(Tap tap, const TapLocation& location, const TapGroups& groups) {
  TapRecord& record = records_.emplace_back();
  record.tap = tap;
  record.stack = location.stack;
  record.layer = location.layer;
  record.part = location.part;
  record.step = in_step_ ? steps_ - 1 : -1;
  record.lengths = groups.lengths;
  record.sentences = groups.sentences;
  record.hypotheses = groups.hypotheses;
  return record;
}

void Trace::write(Tap tap, const TapLocation& location, const Tensor& values, const Ragged& rows) {
  if (!wants(tap)) return;
  write(tap, location, host_floats(values.rows(0, groups_of(rows).rows())), rows);
}

void Trace::write(Tap tap, const TapLocation& location, std::vector<float> values,
                  const Ragged& rows) {
  if (!wants(tap)) return;
  const TapGroups groups = groups_of(rows);
  const std::int64_t count = groups.rows();
  TapRecord& record = add_record(tap, location, groups);
  record.shape = {count, count == 0 ? 0 : std::ssize(values) / count};
  record.values = std::move(values);
}

void Trace::write_per_head(Tap tap, const TapLocation& location, const TapGroups& groups,
                           const std::vector<std::int32_t>& key_lengths, int heads,
                           std::vector<float> values) {
  if (!wants(tap)) return;
  TapRecord& record = add_record(tap, location, groups);
  record.shape = {std::ssize(values)};
  record.key_lengths = key_lengths;
  record.heads = heads;
  std::int64_t offset = 0;
  for (std::size_t g = 0; g < key_lengths.size(); ++g) {
    record.offsets.push_back(offset);
    offset += std::int64_t{heads} * groups.lengths[g] * key_lengths[g];
  }
  record.values = std::move(values);
}

void Trace::write_scores(const TapLocation& location, const TapGroups& groups,
                         const std::vector<std::int32_t>& key_lengths, AttentionScores scores) {
  const auto write = [&](Tap tap, std::vector<float>& values) {
    write_per_head(tap, location, groups, key_lengths, scores.heads(), std::move(values));
  };
  write(Tap::scores, scores.products);
  if (!scores.is_additive()) write(Tap::scaled_scores, scores.scaled);
  if (scores.has_bias()) write(Tap::biased_scores, scores.biased);
  write(Tap::masked_scores, scores.masked);
}

void Trace::write_attention_weights(const TapLocation& location,
                                    const AttentionWeightsResult& weights, const Ragged& queries,
                                    const Ragged& keys, int heads) {
  if (!wants(Tap::attention_weights)) return;
  write_per_head(Tap::attention_weights, location, groups_of(queries), keys.lengths, heads,
                 host_floats(weights.weights));
}

void Trace::write_attention(const TapLocation& location, const TracedHeads& heads,
                            const Ragged& queries, const Ragged& keys) {
  if (wants(Tap::attention_weights) && !heads.score_vector.defined()) {
    write_attention_weights(location,
                            attention_weights(heads.q, heads.k, queries, keys, heads.options),
                            queries, keys, heads.options.heads);
  }
  if (!wants_scores()) return;
  const HostRows q(heads.q), k(heads.k);
  AttentionScores scores(heads.options, q.width, heads.score_vector);
  std::int64_t first_query = 0, first_key = 0;
  for (std::size_t b = 0; b < queries.lengths.size(); ++b) {
    const std::int64_t query_count = queries.lengths[b], key_count = keys.lengths[b];
    AttentionGroup group;
    for (std::int64_t j = 0; j < key_count; ++j) group.keys.push_back(k[first_key + j]);
    for (std::int64_t i = 0; i < query_count; ++i) {
      group.queries.push_back(q[first_query + i]);
      group.positions.push_back(i);
      group.visible.push_back(heads.options.causal ? i + 1 + key_count - query_count : key_count);
    }
    scores.add(group);
    first_query += query_count;
    first_key += key_count;
  }
  write_scores(location, groups_of(queries), keys.lengths, std::move(scores));
}

void Trace::write_attention(const TapLocation& location, const TracedHeads& heads,
                            const VisibleKeys& keys) {
  if (!wants_scores() && !wants(Tap::attention_weights)) return;
  const HostRows q(heads.q), k(heads.k);
  AttentionScores scores(heads.options, q.width, heads.score_vector);
  const auto numbers = [](const Tensor& tensor) {
    return tensor.defined() ? to_host<std::int32_t>(tensor) : std::vector<std::int32_t>();
  };
  const std::vector<std::int32_t> slots = numbers(keys.slot), owners = numbers(keys.hypothesis),
                                  begin = numbers(keys.begin), lengths = numbers(keys.length);
  const std::int64_t stride = keys.slot.defined() ? keys.slot.size(1) : 0;
  const auto row_of_key = [&](std::size_t row, std::int64_t position) -> std::int64_t {
    if (slots.empty()) return begin[row] + position;
    const std::int64_t owner = owners.empty() ? static_cast<std::int64_t>(row) : owners[row];
    return slots[static_cast<std::size_t>(owner * stride + position)];
  };
  std::vector<std::int32_t> key_lengths;
  std::size_t first = 0;
  for (const std::int32_t count : step_groups_.lengths) {
    AttentionGroup group;
    const std::size_t end = first + static_cast<std::size_t>(count), last = end - 1;
    for (std::int64_t j = 0; count > 0 && j < lengths[last]; ++j) {
      group.keys.push_back(k[row_of_key(last, j)]);
    }
    for (std::size_t row = first; row < end; ++row) {
      group.queries.push_back(q[static_cast<std::int64_t>(row)]);
      group.visible.push_back(lengths[row]);
      group.positions.push_back(lengths[row] - 1);
    }
    scores.add(group);
    key_lengths.push_back(static_cast<std::int32_t>(group.keys.size()));
    first = end;
  }
  write_per_head(Tap::attention_weights, location, step_groups_, key_lengths, scores.heads(),
                 std::move(scores.weights));
  write_scores(location, step_groups_, key_lengths, std::move(scores));
}

Variable Trace::watch_context(const TapLocation& location, const WatchedContext& watched,
                              const Ragged& queries, const Ragged& keys) {
  Tape* const tape = watched.context.value().context().tape();
  if (tape == nullptr || !wants(Tap::weight_gradient)) return watched.context;
  // Needs a gradient even if no parameter does: a model that was loaded for inference has none.
  const Variable same(watched.context.value(), true);
  tape->add("watch_context", {same}, {watched.context},
            [this, location, value = watched.value, heads = watched.heads, queries,
             keys](Gradients& gradients) {
              const Tensor& d_context = gradients.output();
              write_per_head(
                  Tap::weight_gradient, location, sentences_of(queries), keys.lengths, heads,
                  weight_gradients(HostRows(d_context), HostRows(value), queries, keys, heads));
              if (gradients.wanted(0)) gradients.add(0, d_context);
            });
  return same;
}

void Trace::begin_step(TapGroups groups) {
  step_groups_ = std::move(groups);
  in_step_ = true;
  ++steps_;
}

const TapRecord* Trace::find(Tap tap, std::string_view stack, int layer, std::string_view part,
                             int step) const {
  for (const TapRecord& record : records_) {
    if (record.tap == tap && record.stack == stack && record.layer == layer &&
        record.step == step && (part.empty() || record.part == part)) {
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
