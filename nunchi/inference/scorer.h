// Computes the log-probability of given translations, or of lines of text.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "nunchi/inference/alignment.h"
#include "nunchi/models/format/tokenizers.h"

namespace nunchi {

struct TextPair {
  std::string source, target;
};

struct PairScore {
  double log_probability = 0;       // of the target with its end token, given the source
  std::vector<std::string> pieces;  // pieces of the target and its end token
  std::vector<float> token_scores;  // log-probability of each piece
  bool cut = false;                 // a side was longer than max_length
  double unknown_share = 0;         // fallback_share() of the tokens of both sides
  AttentionMatrix attention;        // between pieces; empty without ScorerOptions::alignment
};

// Sums over many scores.
struct ScoreTotals {
  std::int64_t count = 0;    // scores
  std::int64_t cut = 0;      // scores of texts that were cut
  std::int64_t unknown = 0;  // scores of texts with kUnknownLimit or more unknown tokens
  std::int64_t tokens = 0;   // target tokens, end tokens included
  double log_probability = 0;

  void add(std::span<const PairScore> scores);
  double perplexity() const;  // per target token; at least one token is needed
};

struct ScorerOptions {
  std::int64_t max_length = 1024;       // tokens of a side; longer sides are cut
  std::int64_t batch_tokens = 4096;     // target tokens of a batch, approximately
  bool alignment = false;               // of Scorer: fill PairScore::attention
  AlignmentHeads alignment_heads = {};  // none: those of the folder, if it names them
};

// Used by one thread at a time. Context, model and tokenizers outlive it.
class Scorer {
 public:
  // Throws Error when the model cannot translate or the tokenizers do not fit it.
  Scorer(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
         const ScorerOptions& options);

  // One score for each pair, in order; it does not depend on the other pairs. An empty side has
  // only its end token.
  std::vector<PairScore> score(std::span<const TextPair> pairs) const;

 private:
  const TranslationModel& model_;
  ContextBase& context_;
  const Tokenizers& tokenizers_;
  ScorerOptions options_;
};

// The same for lines of text; each is scored as if it followed another line. Used by one thread at
// a time. Context, model and tokenizers outlive it.
class LineScorer {
 public:
  // Throws Error when the model is not a language model or the tokenizer does not fit it.
  LineScorer(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
             const ScorerOptions& options);

  // One score for each line, in order; it does not depend on the other lines.
  std::vector<PairScore> score(std::span<const std::string> lines) const;

 private:
  const LanguageModel& model_;
  ContextBase& context_;
  const Tokenizer& tokenizer_;
  ScorerOptions options_;
};

}  // namespace nunchi
