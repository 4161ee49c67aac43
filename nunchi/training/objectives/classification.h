// Classification: the label of each text is predicted.
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

  // The sources are texts, the targets their labels (see LabelTokenizer). Throws Error for a label
  // that the model does not have.
  ObjectiveLoss loss(const HostBatch& batch, std::int32_t first_sentence) const override;

 private:
  const Classifier& model_;
  const MaskedLanguageModel& reader_;  // the same model
  ContextBase& context_;
  SpecialTokens special_;  // of the texts
  double label_smoothing_;
};

// The labels of these parts, sorted, without repetitions. Throws Error when there is only one or
// when there are more than 10,000.
std::vector<std::string> labels_in(std::span<const CorpusPart> parts);
// Throws Error, with file and line, for a label in the pairs of the part that is not among these.
void check_labels(const CorpusPart& part, std::span<const RawPair> pairs,
                  std::span<const std::string> labels);

// The labels of the training data are those of the model, and each is one token.
extern const TargetNeeds kLabels;

}  // namespace nunchi
