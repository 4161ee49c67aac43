// Encoder and decoder layers of the Transformer (Vaswani et al. 2017, figure 1).
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
  float dropout = 0;             // on each sub-layer's output
  float attention_dropout = 0;   // on the attention weights
  float activation_dropout = 0;  // on the feed-forward's hidden activations
  AttentionMask mask =
      AttentionMask::none;      // for EncoderLayer; DecoderLayer always has AttentionMask::causal
  int kv_heads = 0;             // key/value heads; 0: H
  std::int64_t head_width = 0;  // D; 0: C / H
  bool bias = true;             // whether linear layers have one
  bool scale_attention = true;  // scores are divided by √D
  double norm_epsilon = Norm().epsilon;
  bool residual_connections = true;  // see Residual::Options::add_input
  bool normalize = true;             // see Residual::Options::normalize
  // False: causal self-attention attends to later tokens too in training. Decode steps cannot.
  bool look_ahead_mask = true;
  MatrixInit init = {};

  AttentionConfig attention(AttentionMask attention_mask) const;
  // Width of one layer's keys and values together: 2 kv_heads · D.
  std::int64_t key_value_width() const { return 2 * attention(AttentionMask::none).key_width(); }
  Residual::Options residual() const {
    return {placement, norm, width, dropout, norm_epsilon, residual_connections, normalize};
  }
};

// Self-attention and feed-forward: a layer of an encoder or, with AttentionMask::causal, of a
// decoder without cross-attention.
class EncoderLayer {
 public:
  EncoderLayer(Parameters& parameters, const std::string& name, const BlockConfig& config,
               const Position& position);
  // A decode step (in.step) requires AttentionMask::causal.
  ResidualStream operator()(ResidualStream stream, const LayerInput& in) const;

 private:
  std::string_view stack_;
  SelfAttention self_attention_;
  Residual around_self_attention_;
  FeedForward feed_forward_;
  Residual around_feed_forward_;
};

// Causal self-attention, cross-attention and feed-forward.
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
