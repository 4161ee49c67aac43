// A decode step, one (row, head) at a time, and the table of slots as lists.
#pragma once

#include <cmath>
#include <vector>

#include "nunchi/kernels/decode_attention.h"
#include "tests/reference/attention.h"

namespace nunchi::reference {

// The row of k and v where key `p` of row `r` stands.
inline std::int64_t place_of(const kernels::KeyPlaces& keys, std::int64_t r, std::int64_t p) {
  if (keys.slot == nullptr) return keys.begin[r] + p;
  return keys.slot[keys.hypothesis[r] * keys.slot_stride + p];
}

// [rows, H * D]
template <class T>
std::vector<double> decode_attention(const kernels::DecodeAttention<T>& in, std::int64_t rows) {
  using Kind = typename kernels::ScoreBias<T>::Kind;
  const std::int64_t width = in.head_width;
  std::vector<double> out(static_cast<std::size_t>(rows * in.heads * width));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (int h = 0; h < in.heads; ++h) {
      const std::int64_t keys = in.keys.length[r], kv = h / (in.heads / in.kv_heads) * width;
      std::vector<double> weights;
      double top = -INFINITY, total = 0;
      for (std::int64_t p = 0; p < keys; ++p) {
        const std::int64_t place = place_of(in.keys, r, p), relative = p - (keys - 1);
        double score = in.scale * dot(in.q + r * in.q_stride + h * width,
                                      in.k + place * in.k_stride + kv, width);
        if (in.bias.kind == Kind::slopes) {
          score -= in.bias.slopes[h] * static_cast<double>(std::abs(relative));
        } else if (in.bias.kind == Kind::buckets) {
          score += in.bias.table[bucket_of(in.bias, relative) * in.heads + h];
        }
        weights.push_back(score);
        top = std::max(top, score);
      }
      for (double& weight : weights) total += weight = std::exp(weight - top);
      for (std::int64_t p = 0; p < keys; ++p) {
        const T* v = in.v + place_of(in.keys, r, p) * in.v_stride + kv;
        for (std::int64_t d = 0; d < width; ++d) {
          out[(r * in.heads + h) * width + d] += weights[p] / total * static_cast<double>(v[d]);
        }
      }
    }
  }
  return out;
}

// The slots of every hypothesis, as a list each.
struct Slots {
  std::vector<std::vector<std::int32_t>> hypotheses;
  std::int32_t taken = 0;

  // Each goes on from its parent (none in the first step) with so many tokens.
  void extend(const std::vector<std::int32_t>& parents, const std::vector<std::int32_t>& tokens) {
    std::vector<std::vector<std::int32_t>> next;
    for (std::size_t h = 0; h < tokens.size(); ++h) {
      next.push_back(parents.empty() ? std::vector<std::int32_t>()
                                     : hypotheses[static_cast<std::size_t>(parents[h])]);
      for (std::int32_t i = 0; i < tokens[h]; ++i) next.back().push_back(taken++);
    }
    hypotheses = std::move(next);
  }
};

}  // namespace nunchi::reference
