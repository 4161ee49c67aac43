// Runs a model on one text and describes what happens inside it.
//
//   const Pipeline pipeline = Pipeline::open("runs/demo");
//   const Inspection inspection = pipeline.inspector().inspect({.text = "내일 만나요"});
//
// An encoder-decoder translates the text, a language model continues it, and a masked language
// model predicts its masked tokens. The target that is found, or given, is then read by the whole
// model at once while a Trace and a tape are attached, so all values belong to one run.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "nunchi/decoding/beam_record.h"
#include "nunchi/decoding/search_options.h"
#include "nunchi/inference/inspection.h"
#include "nunchi/models/format/alignment_heads.h"
#include "nunchi/models/format/tokenizers.h"

namespace nunchi {

struct InspectorOptions {
  SearchOptions search = {};      // for the target, unless it is given
  std::int64_t max_length = 128;  // tokens of each side; longer texts are cut
  std::int64_t best = 10;         // likeliest tokens of each step
  bool taps = true;               // fill Inspection::tensors and norms
  bool gradients = true;          // fill Inspection::gradient_weight
  // For Inspection::alignment; empty: those that come closest to a one-to-one alignment.
  AlignmentHeads alignment_heads = {};
  std::string model_name = {};  // Inspection::model.name

  static constexpr std::int64_t kLongest = 512;  // of max_length
  // Tokens that a language model adds to a text, at most.
  static constexpr std::int64_t kContinuation = 32;
};

struct InspectedInput {
  std::string text;
  std::optional<std::string> target = {};  // given; otherwise the model writes it
};

// Used by one thread at a time. Context, model and tokenizers outlive it.
class Inspector {
 public:
  // Throws Error when the model can neither translate, nor continue texts, nor fill in masked
  // tokens, and UsageError for wrong options.
  Inspector(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
            const InspectorOptions& options);

  // Throws UsageError for a text without words.
  Inspection inspect(const InspectedInput& input) const;

 private:
  struct Run;
  void translate(const TranslationModel& model, const InspectedInput& input, Run& run) const;
  void continue_text(const LanguageModel& model, const InspectedInput& input, Run& run) const;
  void fill(const MaskedLanguageModel& model, const InspectedInput& input, Run& run) const;
  void compute_traced(Run& run, const std::function<VocabularyLoss()>& loss) const;
  void predict_from_stack(const SequenceModel& model, Run& run) const;
  void add_steps(Run& run) const;
  void add_attention(Run& run) const;
  static void add_tensors(Run& run);
  InspectedText described(const Tokenizer& tokenizer, const Tokens& ids) const;
  InspectedModel described_model() const;
  std::optional<InspectedPositions> positions() const;
  BeamTree beam_tree(const BeamRecord& record, const Tokens& generated) const;

  ContextBase& context_;
  const Model& model_;
  const Tokenizers& tokenizers_;
  InspectorOptions options_;
};

}  // namespace nunchi
