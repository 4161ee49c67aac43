#include "nunchi/trace/attention_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nunchi/ops/attention_options.h"
#include "nunchi/ops/tensors.h"

namespace nunchi {
namespace {

constexpr double kMasked = -std::numeric_limits<double>::infinity();

std::vector<double> softmax(const std::vector<double>& scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  std::vector<double> weights(scores.size(), 0.0);
  if (largest == kMasked) return weights;
  double sum = 0;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    weights[j] = std::exp(scores[j] - largest);
    sum += weights[j];
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace

HostScoreBias::HostScoreBias(const ScoreBias& bias, int heads) : bias_(bias), heads_(heads) {
  if (bias.kind == ScoreBias::Kind::slopes) {
    numbers_ = to_host_f64(bias.slopes);
  } else if (bias.kind == ScoreBias::Kind::buckets) {
    numbers_ = to_host_f64(bias.table.value());
  }
}

double HostScoreBias::at(int head, std::int64_t relative) const {
  const auto h = static_cast<std::size_t>(head), heads = static_cast<std::size_t>(heads_);
  if (bias_.kind == ScoreBias::Kind::slopes) {
    return -numbers_[h] * static_cast<double>(std::abs(relative));
  }
  const int bucket =
      bias_.clipped
          ? kernels::clipped_bucket(relative, bias_.max_distance, bias_.bidirectional)
          : kernels::relative_bucket(relative, static_cast<int>(bias_.table.value().size(0)),
                                     bias_.max_distance, bias_.bidirectional);
  return numbers_[static_cast<std::size_t>(bucket) * heads + h];
}

AttentionScores::AttentionScores(const AttentionOptions& options, std::int64_t width,
                                 const Tensor& score_vector)
    : options_(completed_options(options, width)),
      head_width_(width / options.heads),
      bias_(options.bias, options.heads) {
  if (score_vector.defined()) score_vector_ = to_host_f64(score_vector);
}

double AttentionScores::product(const float* query, const float* key) const {
  double sum = 0;
  for (std::int64_t d = 0; d < head_width_; ++d) {
    const double q = double{query[d]}, k = double{key[d]};
    sum += score_vector_.empty() ? q * k
                                 : score_vector_[static_cast<std::size_t>(d)] * std::tanh(q + k);
  }
  return sum;
}

void AttentionScores::add(const AttentionGroup& group) {
  const int shared_by = options_.heads / options_.kv_heads;
  std::vector<double> row(group.keys.size());
  const auto append = [](std::vector<float>& to, const std::vector<double>& values) {
    for (const double value : values) to.push_back(static_cast<float>(value));
  };
  for (int h = 0; h < options_.heads; ++h) {
    const std::int64_t query_column = h * head_width_, key_column = h / shared_by * head_width_;
    for (std::size_t i = 0; i < group.queries.size(); ++i) {
      const float* const query = group.queries[i] + query_column;
      for (std::size_t j = 0; j < row.size(); ++j) {
        row[j] = product(query, group.keys[j] + key_column);
      }
      append(products, row);
      for (double& score : row) score *= options_.scale;
      append(scaled, row);
      if (has_bias()) {
        for (std::size_t j = 0; j < row.size(); ++j) {
          row[j] += bias_.at(h, static_cast<std::int64_t>(j) - group.positions[i]);
        }
        append(biased, row);
      }
      const auto visible = static_cast<std::size_t>(group.visible[i]);
      for (std::size_t j = visible; j < row.size(); ++j) row[j] = kMasked;
      append(masked, row);
      if (!row.empty()) append(weights, softmax(row));
    }
  }
}

}  // namespace nunchi
