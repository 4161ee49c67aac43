// The options of a search and the hypotheses that it returns.
#pragma once

#include <cstdint>
#include <vector>

#include "nunchi/text/tokens.h"

namespace nunchi {

struct SearchOptions {
  int beam_size = 1;     // 1: greedy
  double normalize = 1;  // scores are log-probabilities divided by length^normalize
  int n_best = 1;        // at most beam_size, unless sampling

  bool sample = false;     // draw tokens at random; n_best is the number of independent samples
  std::int64_t top_k = 0;  // sample from the k most likely tokens; 0: from all
  double top_p = 1;        // sample from the fewest most likely tokens with this total probability
  double temperature = 1;
  std::uint64_t seed = 0;

  std::int64_t min_length = 0;  // tokens, not counting </s>
  // With a source: tokens including the prefix, limited to 3 times the source's length + 20 (but
  // not below min_length). Without a source: tokens after the prefix.
  std::int64_t max_length = 256;
  int no_repeat_ngram = 0;  // n-grams of this size may not repeat; 0: no such rule
  int max_repeats = 8;      // how often a cycle of a few tokens may repeat; 0: no limit

  // Throws UsageError for invalid values.
  void check() const;
};

struct Hypothesis {
  Tokens tokens;  // with the forced first token and the prefix, without </s>
  // Log-probabilities, 0 in the prefix. If `ended_by_eos`, the last is that of </s>.
  std::vector<float> token_scores;
  double log_probability = 0;  // sum of token_scores
  double score = 0;            // normalised by length
  bool ended_by_eos = false;   // false: cut at its maximum length
};

using Hypotheses = std::vector<Hypothesis>;  // best first

}  // namespace nunchi
