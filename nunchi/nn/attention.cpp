#include "nunchi/nn/attention.h"

#include <cmath>

namespace nunchi::nn {
namespace {

AttentionOptions options_of(Parameters& parameters, const AttentionConfig& config) {
  return {.heads = config.heads,
          .kv_heads = config.kv_heads,
          .causal = config.sees == Sees::past,
          .scale = config.scaled ? 0 : 1.0,
          .dropout = {config.dropout, parameters.next_place()}};
}

// What the weights of queries start with: without a scale, their scores would be √D times as large.
double query_factor(const AttentionConfig& config) {
  return config.scaled ? 1 : 1 / std::sqrt(static_cast<double>(config.head_width));
}

// Q, K and V on top of one another, each of which starts on its own. Where heads share their keys
// and values, Q has more rows than the others.
Linear::Options qkv_options(const AttentionConfig& config) {
  const std::int64_t query = config.query_width(), key = config.key_width();
  const double wider =
      Init::xavier(config.width, query).scale / Init::xavier(config.width, key).scale;
  return {.inputs = config.width,
          .outputs = query + 2 * key,
          .stacked = query / key + 2,
          .bias = config.bias,
          .first_rows = query,
          .first_factor = wider * query_factor(config)};
}

Linear::Options output_options(const AttentionConfig& config) {
  return {.inputs = config.query_width(), .outputs = config.width, .bias = config.bias};
}

struct Heads {
  const Variable &q, &k, &v;
  const Ragged &queries, &keys;
};

// Attention and its projection, with what they show to a trace.
Variable attend(const Heads& heads, const AttentionOptions& options, const Linear& output,
                const TapPlace& place) {
  if (Trace* trace = heads.q.value().context().trace()) {
    trace->write(Tap::query, place, heads.q.value(), heads.queries);
    trace->write(Tap::key, place, heads.k.value(), heads.keys);
    trace->write(Tap::value, place, heads.v.value(), heads.keys);
    trace->write_attention_weights(place, heads.q.value(), heads.k.value(), heads.queries,
                                   heads.keys, options);
  }
  const Variable context = attention(heads.q, heads.k, heads.v, heads.queries, heads.keys, options);
  tap(Tap::attention_context, place, context.value(), heads.queries);
  const Variable result = output(context);
  tap(Tap::attention_output, place, result.value(), heads.queries);
  return result;
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

SelfAttention::Projected SelfAttention::split(const Variable& product, const Ragged& batch) const {
  const Variable qkv = position_.rotate(product, options_.heads + options_.kv_heads, batch);
  return {qkv.columns(0, query_width_), qkv.columns(query_width_, key_width_),
          qkv.columns(query_width_ + key_width_, key_width_)};
}

AttentionOptions SelfAttention::options() const {
  AttentionOptions options = options_;
  options.bias = position_.score_bias();
  return options;
}

Variable SelfAttention::operator()(const Variable& x, const Ragged& batch,
                                   const TapPlace& place) const {
  const auto [q, k, v] = split(qkv_(x), batch);
  return attend({q, k, v, batch, batch}, options(), output_, place);
}

Stream SelfAttention::step(PendingNorm& x, const DecodeStep& step, const Tensor& cache) const {
  const auto [q, k, v] = split(x.through(qkv_), step.rows);
  const Tensor keys = cache.columns(0, key_width_), values = cache.columns(key_width_, key_width_);
  NewKeys newest;
  if (step.one_each) {
    newest = {k.value(), v.value(), step.row_slot};
  } else {
    scatter_rows(k.value(), step.rows, step.row_slot, keys);
    scatter_rows(v.value(), step.rows, step.row_slot, values);
  }
  return x.join(output_, Variable(decode_attention({q.value(), keys, values}, step.rows, step.past,
                                                   options(), newest)));
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
              .first_factor = query_factor(config)}),
      output_(parameters, name + ".output", output_options(config)) {}

Variable CrossAttention::operator()(const Variable& x, const Ragged& batch,
                                    const Variable& memory_kv, const Ragged& memory,
                                    const TapPlace& place) const {
  const Variable q = query_(x);
  const Variable k = memory_kv.columns(0, key_width_),
                 v = memory_kv.columns(key_width_, key_width_);
  return attend({q, k, v, batch, memory}, options_, output_, place);
}

Stream CrossAttention::step(PendingNorm& x, const DecodeStep& step,
                            const Variable& memory_kv) const {
  const Variable q = x.through(query_);
  const Tensor &kv = memory_kv.value(), keys = kv.columns(0, key_width_),
               values = kv.columns(key_width_, key_width_);
  return x.join(output_, Variable(decode_attention({q.value(), keys, values}, step.rows,
                                                   step.memory, options_)));
}

}  // namespace nunchi::nn
