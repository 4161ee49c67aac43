// Classification: the model predicts the label of each text.
#pragma once

#include <string>
#include <vector>

#include "nunchi/data/corpus.h"
#include "nunchi/models/sequence_model.h"
#include "nunchi/training/objectives/objectives.h"

namespace nunchi {

class ClassificationObjective final : public Objective {
 public:
  // Throws Error when the model has no labels.
  explicit ClassificationObjective(const ObjectiveParts& parts);

  // Sources are texts, targets their labels (see LabelTokenizer). Throws Error for a label that the
  // model does not have.
  ObjectiveLoss loss(const HostBatch& batch, std::int32_t first_sentence) const override;

 private:
  const Classifier& model_;
  const MaskedLanguageModel& encoder_;  // the same model, as the encoder of the texts
  ContextBase& context_;
  SpecialTokens special_;  // of the texts' tokenizer
  double label_smoothing_;
};

// The distinct labels in these parts, sorted. Throws Error for fewer than 2 or more than 10,000
// labels.
std::vector<std::string> labels_in(std::span<const CorpusPart> parts);
// Throws Error, with file and line, for a label in `pairs`, the pairs of `part`, that is not in
// `labels`.
void check_labels(const CorpusPart& part, std::span<const RawPair> pairs,
                  std::span<const std::string> labels);

// Targets are labels: the model gets the labels of the training data, and each label is one token.
extern const TargetNeeds kLabels;

}  // namespace nunchi
