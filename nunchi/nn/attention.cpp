#include "nunchi/nn/attention.h"

#include <cmath>

namespace nunchi::nn {
namespace {

AttentionOptions options_of(Parameters& parameters, const AttentionConfig& config) {
  return {.heads = config.heads,
          .kv_heads = config.kv_heads,
          .causal = config.mask == AttentionMask::causal,
          .scale = config.scaled ? 0 : 1.0,
          .dropout = {config.dropout, parameters.next_operation_id()}};
}

// Scales the initial query weights: without it, unscaled scores would be √D times as large.
double query_factor(const AttentionConfig& config) {
  return config.scaled ? 1 : 1 / std::sqrt(static_cast<double>(config.head_width));
}

// The weight stacks Q, K and V, each initialised as a separate matrix. Where query heads share keys
// and values, Q has more rows than K and V.
Linear::Options qkv_options(const AttentionConfig& config) {
  const std::int64_t query = config.query_width(), key = config.key_width();
  const double query_to_key_scale =
      Init::xavier(config.width, query).scale / Init::xavier(config.width, key).scale;
  return {.inputs = config.width,
          .outputs = query + 2 * key,
          .stacked = query / key + 2,
          .bias = config.bias,
          .first_rows = query,
          .first_factor = query_to_key_scale * query_factor(config),
          .deviation = config.init.deviation};
}

Linear::Options output_options(const AttentionConfig& config) {
  return {.inputs = config.query_width(),
          .outputs = config.width,
          .bias = config.bias,
          .deviation = config.init.branch_deviation};
}

struct Heads {
  Variable q, k, v;
};

// Attention between whole sentences; writes its taps if a trace is attached.
Variable attend(const Heads& heads, const Ragged& queries, const Ragged& keys,
                const AttentionOptions& options, const TapLocation& location) {
  const auto& [q, k, v] = heads;
  const Variable context = attention(q, k, v, queries, keys, options);
  Trace* const trace = q.value().context().trace();
  if (trace == nullptr) return context;
  trace->write(Tap::query, location, q.value(), queries);
  trace->write(Tap::key, location, k.value(), keys);
  trace->write(Tap::value, location, v.value(), keys);
  trace->write_attention(location, {q.value(), k.value(), options}, queries, keys);
  return trace->watch_context(location, {context, v.value(), options.heads}, queries, keys);
}

// Writes the taps of a decode step whose rows see these `keys` of all cached ones, heads.k.
void trace_step(const TracedHeads& heads, const VisibleKeys& keys, const Ragged& rows,
                const TapLocation& location) {
  Trace* const trace = heads.q.context().trace();
  if (trace == nullptr) return;
  trace->write(Tap::query, location, heads.q, rows);
  trace->write_attention(location, heads, keys);
}

// Attention of the hypotheses' newest tokens over the cache. Adds their keys and values to it.
Variable attend_cached(const Heads& heads, const DecodeStep& step, const Tensor& cache,
                       const AttentionOptions& options, const TapLocation& location) {
  const Tensor &k = heads.k.value(), &v = heads.v.value();
  const std::int64_t width = k.size(1);
  const Tensor keys = cache.columns(0, width), values = cache.columns(width, width);
  NewKeys newest;
  if (step.one_each) {
    newest = {k, v, step.row_slot};
  } else {
    scatter_rows(k, step.rows, step.row_slot, keys);
    scatter_rows(v, step.rows, step.row_slot, values);
  }
  const Variable context(
      decode_attention({heads.q.value(), keys, values}, step.rows, step.past, options, newest));
  trace_step({heads.q.value(), keys, options}, step.past, step.rows, location);
  write_to_trace(Tap::key, location, k, step.rows);
  write_to_trace(Tap::value, location, v, step.rows);
  return context;
}

// The same over the memory of each hypothesis' source.
Variable attend_memory(const Heads& heads, const DecodeStep& step, const AttentionOptions& options,
                       const TapLocation& location) {
  const Variable context(decode_attention({heads.q.value(), heads.k.value(), heads.v.value()},
                                          step.rows, step.memory, options));
  trace_step({heads.q.value(), heads.k.value(), options}, step.memory, step.rows, location);
  return context;
}

Branch project_output(const Variable& context, const Linear& output, const LayerInput& in,
                      const TapLocation& location) {
  write_to_trace(Tap::attention_context, location, context, in);
  Branch branch(context, output.parameters());
  write_to_trace(Tap::attention_output, location, branch, in);
  return branch;
}

}  // namespace

SelfAttention::SelfAttention(Parameters& parameters, const std::string& name,
                             const AttentionConfig& config, const Position& position)
    : query_width_(config.query_width()),
      key_width_(config.key_width()),
      options_(options_of(parameters, config)),
      position_(position),
      qkv_(parameters, name + ".qkv", qkv_options(config)),
      output_(parameters, name + ".output", output_options(config)) {}

SelfAttention::Qkv SelfAttention::split(const Variable& qkv, const Ragged& batch) const {
  const Variable rotated = position_.rotate(qkv, options_.heads + options_.kv_heads, batch);
  return {rotated.columns(0, query_width_), rotated.columns(query_width_, key_width_),
          rotated.columns(query_width_ + key_width_, key_width_)};
}

AttentionOptions SelfAttention::options(ContextBase& context) const {
  AttentionOptions options = options_;
  options.bias = position_.score_bias(context);
  return options;
}

Branch SelfAttention::operator()(LazyNorm& x, const LayerInput& in,
                                 const TapLocation& location) const {
  const auto [q, k, v] = split(qkv_(x), in.rows);
  const AttentionOptions options = this->options(x.context());
  const Variable context = in.step == nullptr
                               ? attend({q, k, v}, in.rows, in.rows, options, location)
                               : attend_cached({q, k, v}, *in.step, in.cache, options, location);
  return project_output(context, output_, in, location);
}

CrossAttention::CrossAttention(Parameters& parameters, const std::string& name,
                               const AttentionConfig& config)
    : key_width_(config.key_width()),
      options_(options_of(parameters, config)),
      query_(parameters, name + ".query",
             {.inputs = config.width,
              .outputs = config.query_width(),
              .bias = config.bias,
              .first_rows = config.query_width(),
              .first_factor = query_factor(config),
              .deviation = config.init.deviation}),
      output_(parameters, name + ".output", output_options(config)) {}

Branch CrossAttention::operator()(LazyNorm& x, const LayerInput& in,
                                  const TapLocation& location) const {
  const Variable q = query_(x), k = in.memory_kv.columns(0, key_width_),
                 v = in.memory_kv.columns(key_width_, key_width_);
  const Variable context = in.step == nullptr
                               ? attend({q, k, v}, in.rows, *in.memory, options_, location)
                               : attend_memory({q, k, v}, *in.step, options_, location);
  return project_output(context, output_, in, location);
}

}  // namespace nunchi::nn
