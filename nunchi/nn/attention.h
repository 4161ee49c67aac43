// Multi-head attention: of a sentence over itself, and over another's encoding.
#pragma once

#include "nunchi/nn/decoder_cache.h"
#include "nunchi/nn/linear.h"
#include "nunchi/nn/position/position.h"
#include "nunchi/nn/residual.h"
#include "nunchi/trace/trace.h"

namespace nunchi::nn {

// What a token sees: its whole sentence, or itself and what came before it.
enum class Sees : std::uint8_t { all, past };

struct AttentionConfig {
  std::int64_t width = 0;  // C
  int heads = 1;
  int kv_heads = 1;             // heads of keys and values, each read by heads / kv_heads of them
  std::int64_t head_width = 0;  // D
  Sees sees = Sees::all;
  bool bias = true;    // of the projections
  bool scaled = true;  // scores are divided by √D
  float dropout = 0;   // of the weights

  std::int64_t query_width() const { return heads * head_width; }
  std::int64_t key_width() const { return kv_heads * head_width; }
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
  // values join `cache` [slots, 2 kv_heads · D or more].
  Stream step(PendingNorm& x, const DecodeStep& step, const Tensor& cache) const;

 private:
  struct Projected {
    Variable q, k, v;
  };
  // Uses up the product of x with the weights of all three.
  Projected split(const Variable& product, const Ragged& batch) const;
  AttentionOptions options() const;

  std::int64_t query_width_, key_width_;
  AttentionOptions options_;
  const Position& position_;
  Linear qkv_, output_;
};

// Queries come from the decoder; keys and values of all layers are one product of the memory, of
// which this layer gets its columns.
class CrossAttention {
 public:
  CrossAttention(Parameters& parameters, const std::string& name, const AttentionConfig& config);

  // x [T, C]; memory_kv [S, 2 kv_heads · D], keys then values → [T, C]
  Variable operator()(const Variable& x, const Ragged& batch, const Variable& memory_kv,
                      const Ragged& memory, const TapPlace& place) const;
  // The newest tokens of hypotheses, x [R, C], over the memory of their sentences.
  Stream step(PendingNorm& x, const DecodeStep& step, const Variable& memory_kv) const;

 private:
  std::int64_t key_width_;
  AttentionOptions options_;
  Linear query_, output_;
};

}  // namespace nunchi::nn
