// The layers of the paper's figure 1.
#pragma once

#include "nunchi/nn/attention.h"
#include "nunchi/nn/feed_forward.h"
#include "nunchi/nn/residual.h"

namespace nunchi::nn {

struct BlockConfig {
  std::int64_t width = 512;    // C
  int heads = 8;               // H
  std::int64_t hidden = 2048;  // F
  NormPlacement placement = NormPlacement::post;
  NormKind norm = NormKind::layer;
  ActivationKind activation = ActivationKind::relu;
  float dropout = 0;             // of each sub-layer's output
  float attention_dropout = 0;   // of attention's weights
  float activation_dropout = 0;  // of the feed-forward's hidden activations
  Sees sees = Sees::all;         // of an EncoderLayer's tokens
  int kv_heads = 0;              // heads of keys and values; 0: H
  std::int64_t head_width = 0;   // D; 0: C / H
  bool bias = true;              // of linear layers
  bool scale_attention = true;   // scores are divided by √D
  double norm_epsilon = Norm().epsilon;
  MatrixInit init = {};

  AttentionConfig attention(Sees seen) const;
  // Of one layer's keys and values together: 2 kv_heads · D.
  std::int64_t key_value_width() const { return 2 * attention(Sees::all).key_width(); }
  Residual::Options residual() const { return {placement, norm, width, dropout, norm_epsilon}; }
};

// Self-attention and feed-forward: a layer of an encoder or, if tokens see the past only, of a
// decoder without memory.
class EncoderLayer {
 public:
  EncoderLayer(Parameters& parameters, const std::string& name, const BlockConfig& config,
               const Position& position);
  // A decode step needs a layer whose tokens see the past.
  ResidualStream operator()(ResidualStream stream, const LayerInput& in) const;

 private:
  std::string_view stack_;
  SelfAttention self_attention_;
  Residual around_self_attention_;
  FeedForward feed_forward_;
  Residual around_feed_forward_;
};

class DecoderLayer {
 public:
  DecoderLayer(Parameters& parameters, const std::string& name, const BlockConfig& config,
               const Position& position);
  ResidualStream operator()(ResidualStream stream, const LayerInput& in) const;

 private:
  SelfAttention self_attention_;
  Residual around_self_attention_;
  CrossAttention cross_attention_;
  Residual around_cross_attention_;
  FeedForward feed_forward_;
  Residual around_feed_forward_;
};

}  // namespace nunchi::nn
