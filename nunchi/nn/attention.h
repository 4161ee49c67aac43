// Multi-head attention: of a sentence over itself, and over another's encoding.
#pragma once

#include "nunchi/nn/decoder_cache.h"
#include "nunchi/nn/linear.h"
#include "nunchi/nn/position/position.h"
#include "nunchi/nn/residual.h"
#include "nunchi/trace/trace.h"

namespace nunchi::nn {

struct AttentionConfig {
  std::int64_t width = 0;  // C
  int heads = 1;
  bool causal = false;
  float dropout = 0;  // of the weights
};

// softmax(Q Kᵀ / √D) V for each head, heads side by side, then the output projection. Q, K and V
// are slices of one product.
class SelfAttention {
 public:
  SelfAttention(Parameters& parameters, const std::string& name, const AttentionConfig& config,
                const Position& position);

  // x [T, C] → [T, C]
  Variable operator()(const Variable& x, const Ragged& batch, const TapPlace& place) const;
  // The newest tokens of hypotheses, x [R, C], over all that came before them; their own keys and
  // values join `cache` [slots, 2 C or more].
  Stream step(PendingNorm& x, const DecodeStep& step, const Tensor& cache) const;

 private:
  struct Projected {
    Variable q, k, v;
  };
  Projected split(const Variable& qkv, const Ragged& batch) const;
  AttentionOptions options() const;

  std::int64_t width_;
  AttentionOptions options_;
  const Position& position_;
  Linear qkv_, output_;
};

// Queries come from the decoder; keys and values of all layers are one product of the memory, of
// which this layer gets its columns.
class CrossAttention {
 public:
  CrossAttention(Parameters& parameters, const std::string& name, const AttentionConfig& config);

  // x [T, C]; memory_kv [S, 2 C], keys then values → [T, C]
  Variable operator()(const Variable& x, const Ragged& batch, const Variable& memory_kv,
                      const Ragged& memory, const TapPlace& place) const;
  // The newest tokens of hypotheses, x [R, C], over the memory of their sentences.
  Stream step(PendingNorm& x, const DecodeStep& step, const Variable& memory_kv) const;

 private:
  std::int64_t width_;
  AttentionOptions options_;
  Linear query_, output_;
};

}  // namespace nunchi::nn
