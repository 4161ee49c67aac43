#include "nunchi/nn/blocks.h"

namespace nunchi::nn {
namespace {

FeedForward::Options feed_forward_options(const BlockConfig& config) {
  return {.width = config.width,
          .hidden = config.hidden,
          .activation = config.activation,
          .dropout = config.activation_dropout,
          .bias = config.bias};
}

Variable fed_forward(const FeedForward& layer, const Variable& x, const Ragged& batch,
                     const TapPlace& place) {
  const Variable result = layer(x, batch);
  tap(Tap::feed_forward, place, result.value(), batch);
  return result;
}

void tap_output(const Stream& stream, const Ragged& batch, const TapPlace& place) {
  if (stream.value.value().context().trace() != nullptr) {
    tap(Tap::layer_output, place, settled(stream, batch).value(), batch);
  }
}

}  // namespace

AttentionConfig BlockConfig::attention(Sees sees) const {
  return {.width = width,
          .heads = heads,
          .kv_heads = kv_heads > 0 ? kv_heads : heads,
          .head_width = head_width > 0 ? head_width : width / heads,
          .sees = sees,
          .bias = bias,
          .scaled = scale_attention,
          .dropout = attention_dropout};
}

EncoderLayer::EncoderLayer(Parameters& parameters, const std::string& name,
                           const BlockConfig& config, const Position& position)
    : stack_(config.sees == Sees::past ? "decoder" : "encoder"),
      self_attention_(parameters, name + ".self_attention", config.attention(config.sees),
                      position),
      around_attention_(parameters, name + ".self_attention", config.residual()),
      feed_forward_(parameters, name + ".feed_forward", feed_forward_options(config)),
      around_feed_forward_(parameters, name + ".feed_forward", config.residual()) {}

Stream EncoderLayer::operator()(const Stream& stream, const Ragged& batch, int layer) const {
  const Stream attended = around_attention_.around(stream, batch, [&](const Variable& x) {
    return self_attention_(x, batch, {stack_, layer, "self_attention"});
  });
  const Stream result = around_feed_forward_.around(attended, batch, [&](const Variable& x) {
    return fed_forward(feed_forward_, x, batch, {stack_, layer, "feed_forward"});
  });
  tap_output(result, batch, {stack_, layer, ""});
  return result;
}

Stream EncoderLayer::step(const Stream& stream, const DecodeStep& step, const Tensor& cache) const {
  const Stream looked_back = around_attention_.step(
      stream, step.rows, [&](PendingNorm& x) { return self_attention_.step(x, step, cache); });
  return around_feed_forward_.step(
      looked_back, step.rows, [&](PendingNorm& x) { return feed_forward_.step(x, step.rows); });
}

DecoderLayer::DecoderLayer(Parameters& parameters, const std::string& name,
                           const BlockConfig& config, const Position& position)
    : self_attention_(parameters, name + ".self_attention", config.attention(Sees::past), position),
      around_self_attention_(parameters, name + ".self_attention", config.residual()),
      cross_attention_(parameters, name + ".cross_attention", config.attention(Sees::all)),
      around_cross_attention_(parameters, name + ".cross_attention", config.residual()),
      feed_forward_(parameters, name + ".feed_forward", feed_forward_options(config)),
      around_feed_forward_(parameters, name + ".feed_forward", config.residual()) {}

Stream DecoderLayer::operator()(const Stream& stream, const Ragged& batch,
                                const Variable& memory_kv, const Ragged& memory, int layer) const {
  const Stream looked_back = around_self_attention_.around(stream, batch, [&](const Variable& x) {
    return self_attention_(x, batch, {"decoder", layer, "self_attention"});
  });
  const Stream looked_over =
      around_cross_attention_.around(looked_back, batch, [&](const Variable& x) {
        return cross_attention_(x, batch, memory_kv, memory, {"decoder", layer, "cross_attention"});
      });
  const Stream result = around_feed_forward_.around(looked_over, batch, [&](const Variable& x) {
    return fed_forward(feed_forward_, x, batch, {"decoder", layer, "feed_forward"});
  });
  tap_output(result, batch, {"decoder", layer, ""});
  return result;
}

Stream DecoderLayer::step(const Stream& stream, const DecodeStep& step, const Tensor& cache,
                          const Variable& memory_kv) const {
  const Ragged& rows = step.rows;
  const Stream looked_back = around_self_attention_.step(
      stream, rows, [&](PendingNorm& x) { return self_attention_.step(x, step, cache); });
  const Stream looked_over = around_cross_attention_.step(
      looked_back, rows, [&](PendingNorm& x) { return cross_attention_.step(x, step, memory_kv); });
  return around_feed_forward_.step(looked_over, rows,
                                   [&](PendingNorm& x) { return feed_forward_.step(x, rows); });
}

}  // namespace nunchi::nn
