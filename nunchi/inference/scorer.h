// How likely a model finds given translations, or lines of a text.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "nunchi/models/format/tokenizers.h"

namespace nunchi {

struct TextPair {
  std::string source, target;
};

struct PairScore {
  double log_probability = 0;       // of the target and its end, given the source if there is one
  std::vector<std::string> pieces;  // of the target, its end last
  std::vector<float> token_scores;  // their log-probabilities
  bool cut = false;                 // a side was longer than the limit
};

struct ScorerOptions {
  std::int64_t max_length = 1024;    // tokens of a side; what is longer is cut
  std::int64_t batch_tokens = 4096;  // target tokens that are scored at once, about
};

// Used by one thread at a time. Context, model and tokenizers outlive it.
class Scorer {
 public:
  // Throws Error when the model does not translate or the tokenizers do not fit it.
  Scorer(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
         const ScorerOptions& options);

  // One for each pair, in order. A pair's score does not depend on the others. An empty target is
  // its end alone; an empty source is its end alone, too.
  std::vector<PairScore> score(std::span<const TextPair> pairs) const;

 private:
  const TranslationModel& model_;
  ContextBase& context_;
  const Tokenizers& tokenizers_;
  ScorerOptions options_;
};

// The same for lines of a text, each as if a line had just ended. Used by one thread at a time;
// model and tokenizers outlive it.
class LineScorer {
 public:
  // Throws Error when the model is no language model or the tokenizer does not fit it.
  LineScorer(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
             const ScorerOptions& options);

  // One for each line, in order. A line's score does not depend on the others.
  std::vector<PairScore> score(std::span<const std::string> lines) const;

 private:
  const LanguageModel& model_;
  ContextBase& context_;
  const Tokenizer& tokenizer_;
  ScorerOptions options_;
};

}  // namespace nunchi
