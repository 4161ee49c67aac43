#include "nunchi/inference/attention_analysis.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace nunchi {
namespace {

// A mean of numbers that are added one by one.
class Mean {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  double value() const { return count_ == 0 ? 0 : sum_ / count_; }

 private:
  double sum_ = 0;
  int count_ = 0;
};

bool is_self_attention(const InspectedPlace& place) { return place.part == "self_attention"; }
bool is_causal(const InspectedPlace& place) {
  return is_self_attention(place) && place.stack == "decoder";
}

// The mean over the heads of each layer of one kind of attention, first layer first.
std::vector<ValueMatrix> layer_means(std::span<const InspectedHead> attention,
                                     std::string_view stack, bool self) {
  std::map<int, std::vector<const ValueMatrix*>> heads;
  for (const InspectedHead& head : attention) {
    if (head.place.stack == stack && is_self_attention(head.place) == self) {
      heads[head.place.layer].push_back(&head.weights);
    }
  }
  std::vector<ValueMatrix> means;
  means.reserve(heads.size());
  for (const auto& [layer, matrices] : heads) means.push_back(mean_of(matrices));
  return means;
}

// A matrix in f64: products of many layers.
struct Shares {
  std::int64_t rows, columns;
  std::vector<double> values;

  Shares(std::int64_t row_count, std::int64_t column_count)
      : rows(row_count), columns(column_count) {
    values.assign(static_cast<std::size_t>(rows * columns), 0.0);
  }
  double& at(std::int64_t i, std::int64_t j) {
    return values[static_cast<std::size_t>(i * columns + j)];
  }
  double at(std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(i * columns + j)];
  }
};

Shares identity(std::int64_t size) {
  Shares shares(size, size);
  for (std::int64_t i = 0; i < size; ++i) shares.at(i, i) = 1;
  return shares;
}

// weights · shares
Shares product(const ValueMatrix& weights, const Shares& shares) {
  Shares result(weights.rows, shares.columns);
  for (std::int64_t i = 0; i < weights.rows; ++i) {
    for (std::int64_t k = 0; k < weights.columns; ++k) {
      const double weight = double{weights.at(i, k)};
      for (std::int64_t j = 0; j < shares.columns; ++j) {
        result.at(i, j) += weight * shares.at(k, j);
      }
    }
  }
  return result;
}

// (a + b) / 2
Shares half_of_each(const Shares& a, const Shares& b) {
  Shares result(a.rows, a.columns);
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    result.values[i] = (a.values[i] + b.values[i]) / 2;
  }
  return result;
}

// The columns [begin, begin + count), each row scaled so that it sums to 1.
ValueMatrix normalized(const Shares& shares, std::int64_t begin, std::int64_t count) {
  ValueMatrix result{.rows = shares.rows, .columns = count, .values = {}};
  for (std::int64_t i = 0; i < shares.rows; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < count; ++j) sum += shares.at(i, begin + j);
    for (std::int64_t j = 0; j < count; ++j) {
      result.values.push_back(
          static_cast<float>(sum > 0 ? shares.at(i, begin + j) / sum : 1.0 / double(count)));
    }
  }
  return result;
}

// Without the last row and column, which are end tokens.
double one_to_one_measure(const ValueMatrix& weights) {
  const std::int64_t rows = std::max<std::int64_t>(1, weights.rows - 1),
                     columns = std::max<std::int64_t>(1, weights.columns - 1);
  Mean of_rows, of_columns;
  for (std::int64_t i = 0; i < rows; ++i) {
    float largest = 0;
    for (std::int64_t j = 0; j < columns; ++j) largest = std::max(largest, weights.at(i, j));
    of_rows.add(double{largest});
  }
  for (std::int64_t j = 0; j < columns; ++j) {
    float largest = 0;
    for (std::int64_t i = 0; i < rows; ++i) largest = std::max(largest, weights.at(i, j));
    of_columns.add(double{largest});
  }
  return (of_rows.value() + of_columns.value()) / 2;
}

}  // namespace

HeadKind measured_kind(const InspectedPlace& place, const ValueMatrix& weights,
                       std::span<const std::pair<int, int>> words) {
  const bool self = is_self_attention(place);
  Mean previous, next, first, same_word, broad;
  std::vector<std::pair<int, int>> word_of(static_cast<std::size_t>(weights.columns), {0, 0});
  for (const auto& word : words) {
    for (int piece = word.first; piece < word.second && piece < weights.columns; ++piece) {
      word_of[static_cast<std::size_t>(piece)] = word;
    }
  }
  for (std::int64_t i = 0; i < weights.rows; ++i) {
    const std::int64_t visible =
        is_causal(place) ? std::min(i + 1, weights.columns) : weights.columns;
    const std::span<const float> row = weights.row(i);
    if (!self || i > 0) first.add(double{row[0]});
    if (visible > 1) {
      double entropy = 0;
      for (std::int64_t j = 0; j < visible; ++j) {
        const double weight = double{row[static_cast<std::size_t>(j)]};
        if (weight > 0) entropy -= weight * std::log(weight);
      }
      broad.add(entropy / std::log(static_cast<double>(visible)));
    }
    if (!self) continue;
    if (i > 0) previous.add(double{row[static_cast<std::size_t>(i - 1)]});
    if (i + 1 < visible) next.add(double{row[static_cast<std::size_t>(i + 1)]});
    if (i < weights.columns) {
      const auto [begin, end] = word_of[static_cast<std::size_t>(i)];
      double own = 0;
      for (int j = begin; j < end && j < visible; ++j) {
        own += double{row[static_cast<std::size_t>(j)]};
      }
      same_word.add(own);
    }
  }
  HeadKind kind{.name = "mixed", .measure = 0, .all = {}};
  if (self) {
    kind.all.emplace_back("previous", previous.value());
    if (!is_causal(place)) kind.all.emplace_back("next", next.value());
  }
  kind.all.emplace_back("first", first.value());
  if (self) kind.all.emplace_back("same word", same_word.value());
  const auto largest = std::max_element(kind.all.begin(), kind.all.end(),
                                        [](auto& a, auto& b) { return a.second < b.second; });
  constexpr double kPlace = 0.4, kBroad = 0.75;
  if (largest->second >= kPlace) {
    kind.name = largest->first;
    kind.measure = largest->second;
  } else if (broad.value() >= kBroad) {
    kind.name = "broad";
    kind.measure = broad.value();
  }
  kind.all.emplace_back("broad", broad.value());
  return kind;
}

std::vector<InspectedWeights> rollout_of(std::span<const InspectedHead> attention) {
  std::vector<InspectedWeights> rollouts;
  const auto add = [&](const char* stack, const std::string& part, ValueMatrix weights) {
    rollouts.push_back({{.stack = stack, .layer = -1, .part = part}, std::move(weights)});
  };
  const std::vector<ValueMatrix> encoder = layer_means(attention, "encoder", true),
                                 decoder = layer_means(attention, "decoder", true),
                                 source = layer_means(attention, "decoder", false);
  std::optional<Shares> encoded;
  for (const ValueMatrix& layer : encoder) {
    if (!encoded) encoded = identity(layer.rows);
    encoded = half_of_each(*encoded, product(layer, *encoded));
  }
  if (encoded) add("encoder", "self_attention", normalized(*encoded, 0, encoded->columns));
  if (decoder.empty()) return rollouts;
  // Shares of the input tokens and, after them, of the source tokens.
  const std::int64_t inputs = decoder.front().rows,
                     sources = source.empty() || !encoded ? 0 : encoded->columns;
  Shares shares(inputs, inputs + sources);
  for (std::int64_t i = 0; i < inputs; ++i) shares.at(i, i) = 1;
  for (std::size_t layer = 0; layer < decoder.size(); ++layer) {
    shares = half_of_each(shares, product(decoder[layer], shares));
    if (sources == 0 || layer >= source.size()) continue;
    const Shares read = product(source[layer], *encoded);
    Shares of_source(inputs, inputs + sources);
    for (std::int64_t i = 0; i < inputs; ++i) {
      for (std::int64_t j = 0; j < sources; ++j) of_source.at(i, inputs + j) = read.at(i, j);
    }
    shares = half_of_each(shares, of_source);
  }
  add("decoder", "self_attention", normalized(shares, 0, inputs));
  if (sources > 0) add("decoder", "cross_attention", normalized(shares, inputs, sources));
  return rollouts;
}

std::optional<InspectedAlignment> alignment_of(std::span<const InspectedHead> attention) {
  struct Measured {
    const InspectedHead* head;
    double measure;
  };
  std::map<int, std::vector<Measured>> layers;
  for (const InspectedHead& head : attention) {
    if (head.place.stack != "decoder" || is_self_attention(head.place)) continue;
    layers[head.place.layer].push_back({&head, one_to_one_measure(head.weights)});
  }
  // Of each layer, the heads that come close to its best one.
  constexpr double kClose = 0.8;
  std::optional<InspectedAlignment> best;
  double best_measure = -1;
  for (const auto& [layer, heads] : layers) {
    double top = 0;
    for (const Measured& head : heads) top = std::max(top, head.measure);
    InspectedAlignment found{.layer = layer, .heads = {}, .weights = {}};
    std::vector<const ValueMatrix*> matrices;
    for (const Measured& head : heads) {
      if (head.measure < kClose * top) continue;
      found.heads.push_back(head.head->place.head);
      matrices.push_back(&head.head->weights);
    }
    found.weights = mean_of(matrices);
    const double measure = one_to_one_measure(found.weights);
    if (measure <= best_measure) continue;
    best_measure = measure;
    best = std::move(found);
  }
  return best;
}

std::optional<InspectedAlignment> alignment_of(std::span<const InspectedHead> attention,
                                               const AlignmentHeads& heads) {
  std::vector<const ValueMatrix*> matrices;
  std::map<int, std::vector<int>> layers;
  for (const InspectedHead& head : attention) {
    if (head.place.stack != "decoder" || is_self_attention(head.place)) continue;
    if (std::ranges::find(heads, AlignmentHead{head.place.layer, head.place.head}) == heads.end()) {
      continue;
    }
    matrices.push_back(&head.weights);
    layers[head.place.layer].push_back(head.place.head);
  }
  if (matrices.empty()) return std::nullopt;
  InspectedAlignment alignment{.layer = 0, .heads = {}, .weights = mean_of(matrices)};
  for (const auto& [layer, numbers] : layers) {
    if (numbers.size() < alignment.heads.size()) continue;
    alignment.layer = layer;
    alignment.heads = numbers;
  }
  return alignment;
}

}  // namespace nunchi
