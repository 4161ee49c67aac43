// Attention of a decode step, one (row, head) at a time, and the slot table as lists.
#pragma once

#include <cmath>
#include <vector>

#include "nunchi/kernels/decode_attention.h"
#include "tests/reference/attention.h"

namespace nunchi::reference {

// The row of k and v that holds key `p` of row `r`.
inline std::int64_t key_row(const kernels::VisibleKeys& keys, std::int64_t r, std::int64_t p) {
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
      double max_score = -INFINITY, total = 0;
      for (std::int64_t p = 0; p < keys; ++p) {
        const std::int64_t row = key_row(in.keys, r, p), relative = p - (keys - 1);
        double score = in.scale * dot(in.q + r * in.q_stride + h * width,
                                      in.k + row * in.k_stride + kv, width);
        if (in.bias.kind == Kind::slopes) {
          score -= in.bias.slopes[h] * static_cast<double>(std::abs(relative));
        } else if (in.bias.kind == Kind::buckets) {
          score += in.bias.table[bucket_of(in.bias, relative) * in.heads + h];
        }
        weights.push_back(score);
        max_score = std::max(max_score, score);
      }
      for (double& weight : weights) total += weight = std::exp(weight - max_score);
      for (std::int64_t p = 0; p < keys; ++p) {
        const T* v = in.v + key_row(in.keys, r, p) * in.v_stride + kv;
        for (std::int64_t d = 0; d < width; ++d) {
          out[(r * in.heads + h) * width + d] += weights[p] / total * static_cast<double>(v[d]);
        }
      }
    }
  }
  return out;
}

// The slot table as one list of slots per hypothesis. In the first step hypothesis h belongs to
// unit h.
struct Slots {
  std::size_t width = 1;                                   // maximum of hypotheses per unit
  std::vector<std::vector<std::int32_t>> unit_slots;       // all slots that each unit owns
  std::vector<std::vector<std::int32_t>> hypotheses = {};  // slots of each hypothesis
  std::vector<std::int32_t> units = {};                    // unit of each hypothesis
  std::vector<std::size_t> prompts = {};                   // tokens of each unit's first step

  // Hypothesis h continues parents[h] with tokens[h] tokens. No parents: the first step.
  void extend(const std::vector<std::int32_t>& parents, const std::vector<std::int32_t>& tokens) {
    std::vector<std::vector<std::int32_t>> next;
    std::vector<std::int32_t> next_units;
    for (std::size_t h = 0; h < tokens.size(); ++h) {
      const bool first = parents.empty();
      const auto parent = first ? 0 : static_cast<std::size_t>(parents[h]);
      next_units.push_back(first ? static_cast<std::int32_t>(h) : units[parent]);
      next.push_back(first ? std::vector<std::int32_t>() : hypotheses[parent]);
      if (first) prompts.push_back(static_cast<std::size_t>(tokens[h]));
      const auto unit = static_cast<std::size_t>(next_units.back());
      for (std::int32_t i = 0; i < tokens[h]; ++i) {
        const std::size_t position = next.back().size();
        const std::size_t later_slot = first ? 0 : (position - prompts[unit]) * width + h % width;
        next.back().push_back(unit_slots[unit][first ? position : prompts[unit] + later_slot]);
      }
    }
    hypotheses = std::move(next);
    units = std::move(next_units);
  }
};

}  // namespace nunchi::reference
