// Classifies lines of text.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "nunchi/inference/text_reader.h"

namespace nunchi {

struct LabelProbability {
  std::string label;
  double probability = 0;
};

// Used by one thread at a time. Context, model and tokenizers outlive it.
class LineClassifier {
 public:
  // Throws Error when the model has no labels or the tokenizer does not fit it.
  LineClassifier(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
                 const ReaderOptions& options);

  // For each line all labels, most likely first. A line's result does not depend on the other
  // lines. A line without words has no labels.
  std::vector<std::vector<LabelProbability>> classify(std::span<const SourceLine> lines);

  // Totals over all calls.
  const LineCounts& counts() const { return reader_.counts(); }

 private:
  const Classifier& model_;
  const MaskedLanguageModel& encoder_;  // the same model
  ContextBase& context_;
  TextReader reader_;
};

}  // namespace nunchi
