// Attention with the full score matrix, one (sentence, head) at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "nunchi/kernels/attention.h"
#include "tests/reference/dropout.h"

namespace nunchi::reference {

inline long double power(long double x, int n) { return n == 0 ? 1.0L : x * power(x, n - 1); }

// The T5 bucket of key - query. The first e buckets hold one distance each; bucket e + n starts
// where (distance / e)^(buckets - e) reaches (max_distance / e)^n. A logarithm could round wrongly.
inline int relative_bucket(std::int64_t relative, int buckets, int max_distance,
                           bool bidirectional) {
  if (bidirectional) {
    const int half = buckets / 2;
    return (relative > 0 ? half : 0) +
           relative_bucket(-std::abs(relative), half, max_distance, false);
  }
  const std::int64_t distance = std::max<std::int64_t>(0, -relative);
  const int exact = buckets / 2;
  if (distance < exact) return static_cast<int>(distance);
  const auto e = static_cast<long double>(exact);
  int bucket = exact;
  while (bucket + 1 < buckets) {
    const int n = bucket + 1 - exact;
    const long double power_of_distance =
        power(static_cast<long double>(distance), buckets - exact) * power(e, n);
    if (power_of_distance < power(max_distance, n) * power(e, buckets - exact)) break;
    ++bucket;
  }
  return bucket;
}

// The row of the bias table for key - query.
template <class T>
int bucket_of(const kernels::ScoreBias<T>& bias, std::int64_t relative) {
  if (!bias.clipped) {
    return relative_bucket(relative, bias.buckets, bias.max_distance, bias.bidirectional);
  }
  if (!bias.bidirectional && relative > 0) relative = 0;
  // Buckets are numbered from the query outwards: first for keys before it, then for keys after it.
  int row = 0;
  for (std::int64_t d = 0; d < bias.max_distance && relative + d < 0; ++d) ++row;
  if (relative > 0) row = bias.max_distance;
  for (std::int64_t d = 0; d < bias.max_distance && d < relative; ++d) ++row;
  return row;
}

// Scores of one head of one sentence; arrays are [queries, keys] unless noted.
struct Scores {
  std::int64_t queries = 0, keys = 0;
  std::vector<double> weights;  // after softmax, before dropout
  std::vector<double> dropout_factors;
  std::vector<double> log_sum;  // [queries]
  std::vector<int> bucket;      // rows of the bias table
};

template <class T>
double dot(const T* a, const T* b, std::int64_t width) {
  double sum = 0;
  for (std::int64_t i = 0; i < width; ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// Head h of query i of sentence b; and the key and value j that it reads.
template <class T>
const T* query_of(const kernels::AttentionInputs<T>& in, std::int64_t b, int h, std::int64_t i) {
  return in.q + (in.q_offsets[b] + i) * in.q_stride + h * in.head_width;
}
template <class T>
const T* key_of(const kernels::AttentionInputs<T>& in, std::int64_t b, int h, std::int64_t j) {
  return in.k + (in.k_begin[b] + j) * in.k_stride + h / (in.heads / in.kv_heads) * in.head_width;
}
template <class T>
const T* value_of(const kernels::AttentionInputs<T>& in, std::int64_t b, int h, std::int64_t j) {
  return in.v + (in.k_begin[b] + j) * in.v_stride + h / (in.heads / in.kv_heads) * in.head_width;
}

template <class T>
Scores scores_of(const kernels::AttentionInputs<T>& in, std::int64_t b, int h) {
  using Kind = typename kernels::ScoreBias<T>::Kind;
  Scores s{.queries = in.q_offsets[b + 1] - in.q_offsets[b], .keys = in.k_length[b]};
  for (std::int64_t i = 0; i < s.queries; ++i) {
    // With a causal mask the last query is at the position of the last key.
    const std::int64_t position = in.causal ? i + s.keys - s.queries : i;
    std::vector<double> row;
    double max_score = -INFINITY, total = 0;
    for (std::int64_t j = 0; j < s.keys; ++j) {
      double score = dot(query_of(in, b, h, i), key_of(in, b, h, j), in.head_width) * in.scale;
      int bucket = 0;
      if (in.bias.kind == Kind::slopes) {
        score -= in.bias.slopes[h] * static_cast<double>(std::abs(position - j));
      } else if (in.bias.kind == Kind::buckets) {
        bucket = bucket_of(in.bias, j - position);
        score += in.bias.table[bucket * in.heads + h];
      }
      row.push_back(in.causal && j > position ? -INFINITY : score);
      max_score = std::max(max_score, row.back());
      s.bucket.push_back(bucket);
      s.dropout_factors.push_back(dropout_factor(
          in.dropout, static_cast<std::uint32_t>(in.sentence[b]), static_cast<std::uint32_t>(i),
          static_cast<std::uint32_t>(h * (1 << 23) + j)));
    }
    const bool sees_any = max_score > -INFINITY;
    for (const double score : row) total += sees_any ? std::exp(score - max_score) : 0;
    for (const double score : row) {
      s.weights.push_back(sees_any ? std::exp(score - max_score) / total : 0);
    }
    s.log_sum.push_back(sees_any ? max_score + std::log(total) : 0);
  }
  return s;
}

struct Attention {
  std::vector<double> out;      // [T, H * D]
  std::vector<double> log_sum;  // [H, T]
};

template <class T>
Attention attention(const kernels::AttentionInputs<T>& in) {
  const std::int64_t rows = in.q_offsets[in.sentences], width = in.head_width;
  Attention result;
  result.out.resize(static_cast<std::size_t>(rows * in.heads * width));
  result.log_sum.resize(static_cast<std::size_t>(in.heads * rows));
  for (std::int64_t b = 0; b < in.sentences; ++b) {
    for (int h = 0; h < in.heads; ++h) {
      const Scores s = scores_of(in, b, h);
      for (std::int64_t i = 0; i < s.queries; ++i) {
        const std::int64_t row = in.q_offsets[b] + i;
        result.log_sum[h * rows + row] = s.log_sum[i];
        for (std::int64_t j = 0; j < s.keys; ++j) {
          const double weight = s.weights[i * s.keys + j] * s.dropout_factors[i * s.keys + j];
          for (std::int64_t d = 0; d < width; ++d) {
            result.out[(row * in.heads + h) * width + d] += weight * value_of(in, b, h, j)[d];
          }
        }
      }
    }
  }
  return result;
}

struct AttentionGradients {
  std::vector<double> d_q;       // [T, H * D]
  std::vector<double> d_k, d_v;  // [S, kv_heads * D]
  std::vector<double> d_table;   // [buckets, H]
};

// P = softmax(S), F = dropout factors, O = (P * F) V: d_V = (P * F)^T d_O, d_P = (d_O V^T) * F,
// d_S = P * (d_P - rowsum(P * d_P)), d_Q = scale * d_S K, d_K = scale * d_S^T Q.
template <class T>
AttentionGradients attention_backward(const kernels::AttentionInputs<T>& in, std::int64_t key_rows,
                                      const T* d_out, std::int64_t d_out_stride) {
  const std::int64_t width = in.head_width;
  AttentionGradients g;
  g.d_q.resize(static_cast<std::size_t>(in.q_offsets[in.sentences] * in.heads * width));
  g.d_k.resize(static_cast<std::size_t>(key_rows * in.kv_heads * width));
  g.d_v = g.d_k;
  g.d_table.resize(static_cast<std::size_t>(in.bias.buckets) * static_cast<std::size_t>(in.heads));
  for (std::int64_t b = 0; b < in.sentences; ++b) {
    for (int h = 0; h < in.heads; ++h) {
      const Scores s = scores_of(in, b, h);
      const int kv_head = h / (in.heads / in.kv_heads);
      for (std::int64_t i = 0; i < s.queries; ++i) {
        const std::int64_t row = in.q_offsets[b] + i;
        const T* d_o = d_out + row * d_out_stride + h * width;
        const double* p = s.weights.data() + i * s.keys;
        std::vector<double> d_p;
        double row_sum = 0;
        for (std::int64_t j = 0; j < s.keys; ++j) {
          d_p.push_back(dot(d_o, value_of(in, b, h, j), width) * s.dropout_factors[i * s.keys + j]);
          row_sum += p[j] * d_p[j];
        }
        for (std::int64_t j = 0; j < s.keys; ++j) {
          const double d_s = p[j] * (d_p[j] - row_sum);
          const std::int64_t key = ((in.k_begin[b] + j) * in.kv_heads + kv_head) * width;
          for (std::int64_t d = 0; d < width; ++d) {
            g.d_v[key + d] += p[j] * s.dropout_factors[i * s.keys + j] * d_o[d];
            g.d_q[(row * in.heads + h) * width + d] += in.scale * d_s * key_of(in, b, h, j)[d];
            g.d_k[key + d] += in.scale * d_s * query_of(in, b, h, i)[d];
          }
          if (in.bias.buckets > 0) g.d_table[s.bucket[i * s.keys + j] * in.heads + h] += d_s;
        }
      }
    }
  }
  return g;
}

}  // namespace nunchi::reference
