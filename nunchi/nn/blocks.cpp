#include "nunchi/nn/blocks.h"

namespace nunchi::nn {
namespace {

FeedForward::Options feed_forward_options(const BlockConfig& config) {
  return {.width = config.width,
          .hidden = config.hidden,
          .activation = config.activation,
          .dropout = config.activation_dropout,
          .bias = config.bias,
          .init = config.init};
}

// A sub-layer with its residual connection and norm.
ResidualStream run(const Residual& around, const auto& sub_layer, ResidualStream&& stream,
                   const LayerInput& in, const TapLocation& location) {
  return around(std::move(stream), in, location,
                [&](LazyNorm& x) { return sub_layer(x, in, location); });
}

}  // namespace

AttentionConfig BlockConfig::attention(AttentionMask attention_mask) const {
  return {.width = width,
          .heads = heads,
          .kv_heads = kv_heads > 0 ? kv_heads : heads,
          .head_width = head_width > 0 ? head_width : width / heads,
          .mask = look_ahead_mask ? attention_mask : AttentionMask::none,
          .bias = bias,
          .scaled = scale_attention,
          .dropout = attention_dropout,
          .init = init};
}

EncoderLayer::EncoderLayer(Parameters& parameters, const std::string& name,
                           const BlockConfig& config, const Position& position)
    : stack_(config.mask == AttentionMask::causal ? "decoder" : "encoder"),
      self_attention_(parameters, name + ".self_attention", config.attention(config.mask),
                      position),
      around_self_attention_(parameters, name + ".self_attention", config.residual()),
      feed_forward_(parameters, name + ".feed_forward", feed_forward_options(config)),
      around_feed_forward_(parameters, name + ".feed_forward", config.residual()) {}

ResidualStream EncoderLayer::operator()(ResidualStream stream, const LayerInput& in) const {
  stream = run(around_self_attention_, self_attention_, std::move(stream), in,
               {stack_, in.layer, "self_attention"});
  stream = run(around_feed_forward_, feed_forward_, std::move(stream), in,
               {stack_, in.layer, "feed_forward"});
  write_to_trace(Tap::layer_output, {stack_, in.layer, ""}, stream, in);
  return stream;
}

DecoderLayer::DecoderLayer(Parameters& parameters, const std::string& name,
                           const BlockConfig& config, const Position& position)
    : self_attention_(parameters, name + ".self_attention", config.attention(AttentionMask::causal),
                      position),
      around_self_attention_(parameters, name + ".self_attention", config.residual()),
      cross_attention_(parameters, name + ".cross_attention",
                       config.attention(AttentionMask::none)),
      around_cross_attention_(parameters, name + ".cross_attention", config.residual()),
      feed_forward_(parameters, name + ".feed_forward", feed_forward_options(config)),
      around_feed_forward_(parameters, name + ".feed_forward", config.residual()) {}

ResidualStream DecoderLayer::operator()(ResidualStream stream, const LayerInput& in) const {
  stream = run(around_self_attention_, self_attention_, std::move(stream), in,
               {"decoder", in.layer, "self_attention"});
  stream = run(around_cross_attention_, cross_attention_, std::move(stream), in,
               {"decoder", in.layer, "cross_attention"});
  stream = run(around_feed_forward_, feed_forward_, std::move(stream), in,
               {"decoder", in.layer, "feed_forward"});
  write_to_trace(Tap::layer_output, {"decoder", in.layer, ""}, stream, in);
  return stream;
}

}  // namespace nunchi::nn
