// Translation from text to text.
//
//   CpuContext context;
//   const ModelFolder folder(context, "runs/multi30k-tiny", as_translation_model);
//   Translator translator(context, folder.model(), folder.tokenizers(),
//                         {.search = folder.search()});
//   translator.translate("A man is riding a bike.").text
//
// Pipeline (inference/pipeline.h) does the same in two lines.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "nunchi/decoding/searcher.h"
#include "nunchi/inference/alignment.h"
#include "nunchi/inference/source_line.h"
#include "nunchi/models/format/tokenizers.h"

namespace nunchi {

struct TranslatorOptions {
  SearchOptions search;
  std::int64_t max_source_length = 1024;  // tokens of a source or prefix; longer ones are cut
  std::int64_t batch_tokens = 2048;       // source tokens of a batch, approximately
  std::int64_t batch_sentences = 64;
  bool alignment = false;  // fill Translation::attention
};

struct Translation {
  std::string text;  // one line
  double score = 0;  // normalised log-probability
  double log_probability = 0;
  std::vector<std::string> pieces;  // of the target, with its end token unless it was cut
  LastPiece last_piece = LastPiece::text;
  std::vector<float> token_scores;  // log-probability of each piece
  AttentionMatrix attention;        // between pieces; empty without TranslatorOptions::alignment
  double unknown_share = 0;         // fallback_share() of the source's tokens
};

using Translations = std::vector<Translation>;  // best first

// Used by one thread at a time. Context, model and tokenizers outlive it.
class Translator {
 public:
  // Throws Error when the model cannot translate or the tokenizers do not fit it, and UsageError
  // for options that contradict each other.
  Translator(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
             const TranslatorOptions& options);

  // Up to n_best translations for each line. A line without words has one empty translation. A
  // line's result does not depend on the other lines.
  std::vector<Translations> translate(std::span<const SourceLine> lines);
  // The best translation of one line.
  Translation translate(const std::string& text);

  // Totals over all calls.
  const LineCounts& counts() const { return counts_; }

 private:
  struct Batch;
  struct LineTokens;
  std::vector<Batch> batches_of(std::span<const SourceLine> lines);
  LineTokens tokens_of(const SourceLine& line);
  Translations to_text(const Hypotheses& found) const;
  void align(const Tokens& source, const Hypotheses& found, Translations& translations) const;

  const TranslationModel& model_;
  ContextBase& context_;
  const Tokenizers& tokenizers_;
  TranslatorOptions options_;
  Searcher searcher_;
  LineCounts counts_;
};

}  // namespace nunchi
