// Search in its simplest form: sorts all candidates, checks every token, keeps lists.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "nunchi/text/tokens.h"

namespace nunchi::reference {

// log Σ exp(x)
inline double log_sum(const std::vector<double>& x) {
  const double max_logit = *std::max_element(x.begin(), x.end());
  long double sum = 0;
  for (const double value : x) sum += std::exp(static_cast<long double>(value) - max_logit);
  return max_logit + static_cast<double>(std::log(sum));
}

// All ids, most likely first; among equals, the lower id first.
inline std::vector<std::int32_t> sorted_ids(const std::vector<double>& x) {
  std::vector<std::int32_t> ids(x.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](std::int32_t a, std::int32_t b) {
    return x[static_cast<std::size_t>(a)] > x[static_cast<std::size_t>(b)];
  });
  return ids;
}

struct SamplingOptions {
  double temperature = 1;
  std::int64_t top_k = 0;
  double top_p = 1;
};

// The probability with which each token is sampled.
inline std::vector<double> sample_probabilities(const std::vector<double>& logits,
                                                const SamplingOptions& options) {
  const double max_logit = *std::max_element(logits.begin(), logits.end());
  std::vector<std::int32_t> allowed = sorted_ids(logits);
  if (options.top_k > 0 && options.top_k < static_cast<std::int64_t>(allowed.size())) {
    allowed.resize(static_cast<std::size_t>(options.top_k));
  }
  const auto weight = [&](std::int32_t id) {
    return std::exp((logits[static_cast<std::size_t>(id)] - max_logit) / options.temperature);
  };
  const auto mass = [&] {
    double sum = 0;
    for (const std::int32_t id : allowed) sum += weight(id);
    return sum;
  };
  if (options.top_p < 1) {
    const double target = options.top_p * mass();
    double sum = 0;
    std::size_t count = 0;
    while (count < allowed.size() && sum < target) sum += weight(allowed[count++]);
    allowed.resize(count);
  }
  std::vector<double> probabilities(logits.size(), 0);
  const double total = mass();
  for (const std::int32_t id : allowed) {
    probabilities[static_cast<std::size_t>(id)] = weight(id) / total;
  }
  return probabilities;
}

struct BanRules {
  std::int32_t suppressed_token = 1, end_token = 2;
  std::int64_t min_length = 0, no_repeat_ngram = 0, max_repeats = 0, longest_cycle = 8;
};

// Whether the last `size` tokens have period `period`.
inline bool has_period(const Tokens& tokens, std::size_t size, std::size_t period) {
  if (tokens.size() < size) return false;
  for (std::size_t i = tokens.size() - size; i + period < tokens.size(); ++i) {
    if (tokens[i] != tokens[i + period]) return false;
  }
  return true;
}

// Whether `token` must not follow `previous`.
inline bool is_banned(const Tokens& previous, std::int32_t token, const BanRules& rules) {
  if (token == rules.suppressed_token) return true;
  if (token == rules.end_token) {
    return static_cast<std::int64_t>(previous.size()) < rules.min_length;
  }
  Tokens after = previous;
  after.push_back(token);
  const auto n = static_cast<std::size_t>(rules.no_repeat_ngram);
  if (n > 0 && after.size() >= n) {
    const Tokens last(after.end() - static_cast<std::ptrdiff_t>(n), after.end());
    for (auto first = after.begin(); first + static_cast<std::ptrdiff_t>(n) != after.end();
         ++first) {
      if (std::equal(last.begin(), last.end(), first)) return true;
    }
  }
  // A cycle has come max_repeats times, and this token would start it once more.
  for (std::int64_t period = 1; rules.max_repeats > 0 && period <= rules.longest_cycle; ++period) {
    const auto size = static_cast<std::size_t>(period * rules.max_repeats + 1);
    if (has_period(after, size, static_cast<std::size_t>(period))) return true;
  }
  return false;
}

struct BeamRow {
  Tokens tokens;                    // including the prefix, without </s>
  std::vector<float> token_scores;  // zeros for the prefix
  double score = 0;
  std::int32_t parent = 0;  // row of the previous step
  bool ended = false;       // ended by </s>
};

// A unit of a search, as in kernels/search.h.
struct BeamUnit {
  std::int32_t number = 0;
  std::vector<BeamRow> rows;
  std::vector<BeamRow> finished;
};

struct BeamCandidates {
  std::vector<std::vector<double>> log_probs;  // [rows][candidates], descending
  std::vector<std::vector<std::int32_t>> ids;  // [rows][candidates]
  std::int64_t first_row = 0;                  // first row of the unit in the step
};

struct BeamRules {
  std::int64_t beam = 1, max_length = 1;
  std::int32_t end_token = 2;
};

// One step of one unit. Returns false when the unit is done.
inline bool beam_step(BeamUnit& unit, const BeamCandidates& candidates, const BeamRules& rules) {
  struct Candidate {
    std::size_t row, rank_in_row;
    double score;
  };
  std::vector<Candidate> ranked;
  for (std::size_t row = 0; row < unit.rows.size(); ++row) {
    for (std::size_t rank_in_row = 0; rank_in_row < candidates.ids[row].size(); ++rank_in_row) {
      const double score = unit.rows[row].score + candidates.log_probs[row][rank_in_row];
      if (score > -INFINITY) ranked.push_back({row, rank_in_row, score});
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  const auto beam = static_cast<std::size_t>(rules.beam);
  const std::size_t length = unit.rows[0].tokens.size() + 1;
  const bool at_max_length = static_cast<std::int64_t>(length) >= rules.max_length;
  std::vector<BeamRow> next;
  for (std::size_t rank = 0; rank < ranked.size() && next.size() < beam; ++rank) {
    const Candidate& c = ranked[rank];
    BeamRow row = unit.rows[c.row];
    const std::int32_t token = candidates.ids[c.row][c.rank_in_row];
    row.score = c.score;
    row.parent = static_cast<std::int32_t>(candidates.first_row + static_cast<std::int64_t>(c.row));
    row.token_scores.push_back(static_cast<float>(candidates.log_probs[c.row][c.rank_in_row]));
    row.ended = token == rules.end_token;
    if (row.ended) {
      if (rank < beam && unit.finished.size() < beam) unit.finished.push_back(row);
      continue;
    }
    row.tokens.push_back(token);
    next.push_back(row);
    if (at_max_length && unit.finished.size() < beam) unit.finished.push_back(row);
  }
  unit.rows = next;
  return !at_max_length && unit.finished.size() < beam && !next.empty();
}

}  // namespace nunchi::reference
