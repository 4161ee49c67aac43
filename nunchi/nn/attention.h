// Multi-head self-attention, and cross-attention over the encoder's output.
#pragma once

#include "nunchi/nn/layer_input.h"
#include "nunchi/nn/linear.h"
#include "nunchi/nn/position/position.h"

namespace nunchi::nn {

// Which tokens a token attends to: all of its sentence, or itself and those before it.
enum class AttentionMask : std::uint8_t { none, causal };

struct AttentionConfig {
  std::int64_t width = 0;  // C
  int heads = 1;
  int kv_heads = 1;             // key/value heads; heads / kv_heads query heads share each
  std::int64_t head_width = 0;  // D
  AttentionMask mask = AttentionMask::none;
  bool bias = true;    // whether the projections have one
  bool scaled = true;  // scores are divided by √D
  float dropout = 0;   // on the attention weights
  MatrixInit init = {};

  std::int64_t query_width() const { return heads * head_width; }
  std::int64_t key_width() const { return kv_heads * head_width; }
};

// softmax(Q Kᵀ / √D) V for each head; the heads are concatenated and projected. Q, K and V are
// slices of one GEMM's output.
class SelfAttention {
 public:
  SelfAttention(Parameters& parameters, const std::string& name, const AttentionConfig& config,
                const Position& position);

  // x [T, C] → [T, C]
  Branch operator()(LazyNorm& x, const LayerInput& in, const TapLocation& location) const;

 private:
  struct Qkv {
    Variable q, k, v;
  };
  // Rotates q and k by their positions and splits qkv [T, (H + 2 kv_heads) · D], whose memory may
  // be reused.
  Qkv split(const Variable& qkv, const Ragged& batch) const;
  AttentionOptions options(ContextBase& context) const;

  std::int64_t query_width_, key_width_;
  AttentionOptions options_;
  const Position& position_;
  Linear qkv_, output_;
};

// Queries come from the decoder. One GEMM over the encoder's output computes the keys and values of
// all layers; each layer gets its columns (LayerInput::memory_kv).
class CrossAttention {
 public:
  CrossAttention(Parameters& parameters, const std::string& name, const AttentionConfig& config);

  // x [T, C] → [T, C]
  Branch operator()(LazyNorm& x, const LayerInput& in, const TapLocation& location) const;

 private:
  std::int64_t key_width_;
  AttentionOptions options_;
  Linear query_, output_;
};

}  // namespace nunchi::nn
