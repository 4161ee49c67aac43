// Translation from text to text.
//
//   CpuContext context;
//   const ModelFolder folder(context, "runs/multi30k-tiny", as_translation_model);
//   Translator translator(context, folder.model(), folder.tokenizers(),
//                         {.search = folder.search()});
//   translator.translate("A man is riding a bike.").text
//
// Pipeline (inference/pipeline.h) does the same in two lines. Several models can translate
// together: see inference/ensemble.h.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nunchi/decoding/searcher.h"
#include "nunchi/decoding/typical_scores.h"
#include "nunchi/inference/alignment.h"
#include "nunchi/inference/source_line.h"
#include "nunchi/inference/terms.h"
#include "nunchi/models/ensemble.h"
#include "nunchi/models/format/tokenizers.h"

namespace nunchi {

struct TranslatorOptions {
  SearchOptions search;
  std::int64_t max_source_length = 1024;  // tokens of a source or prefix; longer ones are cut
  std::int64_t batch_tokens = 2048;       // source tokens of a batch, approximately
  std::int64_t batch_sentences = 64;
  bool alignment = false;               // fill Translation::attention
  AlignmentHeads alignment_heads = {};  // none: those of the folder, if it names them
  // Terms to look for in every line; null: none. Lines with terms, these or others, are searched
  // with a beam of at least term_beam() hypotheses.
  std::shared_ptr<const TermList> terms = nullptr;
  bool inline_terms = false;  // lines contain markup: see read_inline_terms()

  // Hypotheses for a line with `terms` terms: a few for each number of terms that a hypothesis can
  // have at a time.
  static int term_beam(std::int64_t terms);
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
  // Whether the best translation of the line is far less likely than those of the validation data
  // (TypicalScores::is_unlikely). Never for a line with a prefix or terms, for samples, or if the
  // model folder has no typical scores.
  bool unlikely = false;
};

using Translations = std::vector<Translation>;  // best first

// One of the models that translate together.
struct TranslatorModel {
  const Model& model;
  const Tokenizers& tokenizers;
  std::string name;  // for messages: its folder
  std::optional<TypicalScores> typical_scores = std::nullopt;
};

// Used by one thread at a time. Context, models and tokenizers outlive it.
class Translator {
 public:
  // Throws Error when the model cannot translate or the tokenizers do not fit it, and UsageError
  // for options that contradict each other.
  Translator(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
             const TranslatorOptions& options);
  // An ensemble (models/ensemble.h). Also throws Error when the models do not have the same target
  // tokens. Translation::attention is that of the first model, and so are the typical scores.
  Translator(ContextBase& context, const std::vector<TranslatorModel>& models,
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
  struct Member {
    const TranslationModel* model;
    const Tokenizers* tokenizers;
  };
  static std::vector<Member> checked(const std::vector<TranslatorModel>& models);
  static std::unique_ptr<EnsembleModel> ensemble_of(const std::vector<Member>& members);
  const EncoderDecoder& searched_model() const;
  std::vector<Batch> batches_of(std::span<const SourceLine> lines);
  Searcher& searcher_for(const Batch& batch);
  RequiredPhrases phrases_of(const SourceLine& line, std::int64_t prefix);
  void check_terms() const;
  LineTokens tokens_of(const SourceLine& line);
  LineTokens tokens_of_marked(const SourceLine& line);
  Translations to_text(const Hypotheses& found) const;
  bool is_unlikely(const Batch& batch, std::size_t line, const Hypothesis& best) const;
  void align(const Tokens& source, const Hypotheses& found, Translations& translations) const;
  Source source_of(const Batch& batch) const;
  const Tokenizers& tokenizers() const { return *members_.front().tokenizers; }

  ContextBase& context_;
  std::vector<Member> members_;
  std::unique_ptr<EnsembleModel> ensemble_;  // null for one model
  TranslatorOptions options_;
  std::optional<TypicalScores> typical_scores_;  // none: no translation is unlikely
  Searcher searcher_;
  std::map<int, std::unique_ptr<Searcher>> term_searchers_;  // by beam size, for lines with terms
  LineCounts counts_;
};

}  // namespace nunchi
