// The steps from queries and keys to attention weights, one by one. Fused kernels never store them,
// so a trace recomputes them on the host, in f64.
#pragma once

#include <cstdint>
#include <vector>

#include "nunchi/ops/attention.h"

namespace nunchi {

// The bias that a description (ScoreBias) gives to each head at each relative position.
class HostScoreBias {
 public:
  HostScoreBias(const ScoreBias& bias, int heads);

  bool exists() const { return bias_.kind != ScoreBias::Kind::none; }
  // `relative`: position of the key - position of the query.
  double at(int head, std::int64_t relative) const;

 private:
  ScoreBias bias_;
  int heads_;
  std::vector<double> numbers_;  // the slopes [H] or the table [buckets, H]
};

// The queries and keys of one group of rows.
struct AttentionGroup {
  std::vector<const float*> queries;    // rows [H · D]
  std::vector<const float*> keys;       // rows [kv_heads · D]
  std::vector<std::int64_t> visible;    // each query sees this many keys, from the first on
  std::vector<std::int64_t> positions;  // of each query; key j has position j
};

class AttentionScores {
 public:
  // `width` is H · D. With a `score_vector` [D] the one head's score is additive: v · tanh(q + k).
  AttentionScores(const AttentionOptions& options, std::int64_t width,
                  const Tensor& score_vector = {});

  void add(const AttentionGroup& group);

  int heads() const { return options_.heads; }
  bool is_additive() const { return !score_vector_.empty(); }
  bool has_bias() const { return bias_.exists(); }
  // [H, queries, keys] of each group, one after another.
  std::vector<float> products, scaled, biased, masked, weights;

 private:
  double product(const float* query, const float* key) const;

  AttentionOptions options_;
  std::int64_t head_width_;
  std::vector<double> score_vector_;  // empty: scores are dot products
  HostScoreBias bias_;
};

}  // namespace nunchi
