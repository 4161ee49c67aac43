// What a caller can ask of a search, and what it finds.
#pragma once

#include <cstdint>
#include <vector>

#include "nunchi/text/tokens.h"

namespace nunchi {

struct SearchOptions {
  int beam_size = 1;     // 1: greedy
  double normalize = 1;  // scores are log-probabilities divided by length^normalize
  int n_best = 1;        // at most beam_size, unless sampling

  bool sample = false;     // draw tokens instead, n_best independent sentences
  std::int64_t top_k = 0;  // only from the k most likely tokens; 0: all
  double top_p = 1;        // only from the most likely tokens that hold this share of probability
  double temperature = 1;
  std::uint64_t seed = 0;

  std::int64_t min_length = 0;  // tokens, </s> not counted
  // Never more than 3 times the source's length + 20; without a source, tokens beyond the prefix.
  std::int64_t max_length = 256;
  int no_repeat_ngram = 0;  // no n-gram comes twice; 0: allowed
  int max_repeats = 8;      // how often a cycle of a few tokens may repeat; 0: without limit

  // Throws UsageError for values that make no sense.
  void check() const;
};

struct Hypothesis {
  Tokens tokens;                    // forced first token and prefix included, the end token not
  std::vector<float> token_scores;  // log-probabilities; zero for a prefix; one more for </s>
  double log_probability = 0;       // their sum
  double score = 0;                 // normalised
  bool ended = false;               // by </s>; else cut at its maximum length
};

using Hypotheses = std::vector<Hypothesis>;  // best first

}  // namespace nunchi
