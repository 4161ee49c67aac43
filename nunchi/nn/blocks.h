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
  bool causal = false;           // an EncoderLayer's tokens see themselves and those before them

  Residual::Options residual() const { return {placement, norm, width, dropout}; }
};

// Self-attention and feed-forward: the encoder's layer or, causal, that of a decoder without
// memory.
class EncoderLayer {
 public:
  EncoderLayer(Parameters& parameters, const std::string& name, const BlockConfig& config,
               const Position& position);
  Stream operator()(const Stream& stream, const Ragged& batch, int layer) const;
  // The newest tokens of hypotheses; `cache` [slots, 2 C] is this layer's. Of a causal layer.
  Stream step(const Stream& stream, const DecodeStep& step, const Tensor& cache) const;

 private:
  std::string_view stack_;
  SelfAttention self_attention_;
  Residual around_attention_;
  FeedForward feed_forward_;
  Residual around_feed_forward_;
};

class DecoderLayer {
 public:
  DecoderLayer(Parameters& parameters, const std::string& name, const BlockConfig& config,
               const Position& position);
  // memory_kv [S, 2 C]: this layer's keys and values of the encoder's output.
  Stream operator()(const Stream& stream, const Ragged& batch, const Variable& memory_kv,
                    const Ragged& memory, int layer) const;
  // The newest tokens of hypotheses; `cache` [slots, 2 C] is this layer's.
  Stream step(const Stream& stream, const DecodeStep& step, const Tensor& cache,
              const Variable& memory_kv) const;

 private:
  SelfAttention self_attention_;
  Residual around_self_attention_;
  CrossAttention cross_attention_;
  Residual around_cross_attention_;
  FeedForward feed_forward_;
  Residual around_feed_forward_;
};

}  // namespace nunchi::nn
