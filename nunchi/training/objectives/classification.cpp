#include "nunchi/training/objectives/classification.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"
#include "nunchi/base/printable.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/training/config/train_config.h"
#include "nunchi/training/objectives/label_tokenizer.h"
#include "nunchi/training/objectives/masked.h"

namespace nunchi {
namespace {

constexpr std::size_t kMaxLabels = 10'000;

// The label of a line; empty if the line is not an example.
std::string label_in(const RawPair& pair) {
  return pair.cut || pair.source.empty() ? std::string() : label_of(pair.target);
}

std::string location_of(const CorpusPart& part, std::int64_t line) {
  return files_of(part).back().string() + ":" + std::to_string(line);
}

}  // namespace

std::vector<std::string> labels_in(std::span<const CorpusPart> parts) {
  std::set<std::string> labels;
  for (const CorpusPart& part : parts) {
    PairReader reader(part);
    for (RawPair pair; reader.next(pair);) {
      const std::string label = label_in(pair);
      if (label.empty() || !labels.insert(label).second || labels.size() <= kMaxLabels) continue;
      throw Error(location_of(part, reader.line_number()) + ": more than " +
                  grouped(static_cast<std::int64_t>(kMaxLabels)) +
                  " labels. A line must be a text, a tab and its label; see "
                  "'data.train.target_column'.");
    }
  }
  if (labels.size() < 2) {
    throw Error(labels.empty() ? std::string("the training data have no labels.")
                               : "all training data have the label '" + printable(*labels.begin()) +
                                     "'; classification needs at least two.");
  }
  return {labels.begin(), labels.end()};
}

void check_labels(const CorpusPart& part, std::span<const RawPair> pairs,
                  std::span<const std::string> labels) {
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::string label = label_in(pairs[i]);
    if (label.empty() || std::ranges::find(labels, label) != labels.end()) continue;
    throw Error(location_of(part, part.first_line + static_cast<std::int64_t>(i)) +
                ": the label '" + printable(label) +
                "' is neither in the training data nor among 'model.labels'.");
  }
}

const TargetNeeds kLabels = {
    .configure = [](const ModelConfig& model, std::span<const CorpusPart> train) -> ModelConfig {
      const ClassifierConfig* classifier = as_classifier_config(model);
      if (classifier == nullptr) {
        throw Error("a model of the family " + model->family() + " cannot learn to classify.");
      }
      return classifier->with_labels(labels_in(train));
    },
    .tokenizer = [](const Model& model) -> std::unique_ptr<Tokenizer> {
      return std::make_unique<LabelTokenizer>(as_classifier(model).labels());
    },
    .check = [](const CorpusPart& part, std::span<const RawPair> pairs,
                const Model& model) { check_labels(part, pairs, as_classifier(model).labels()); },
};

ClassificationObjective::ClassificationObjective(const ObjectiveParts& parts)
    : model_(as_classifier(parts.model)),
      encoder_(as_masked_language_model(parts.model)),
      context_(parts.context),
      special_(parts.tokenizers.target().special()),
      label_smoothing_(parts.options.label_smoothing) {}

ObjectiveLoss ClassificationObjective::loss(const HostBatch& batch,
                                            std::int32_t first_sentence) const {
  const bool training = context_.is_training();
  std::vector<Tokens> texts;
  const std::vector<Tokens>& sources = tokens_of(batch.sources);
  std::vector<std::int32_t> labels, indices(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::span<const std::int32_t> source = sources[i];  // ends with </s>
    texts.push_back(enclosed(source.first(source.size() - 1), special_, encoder_.max_length()));
    const std::int32_t label = batch.targets[i].front();
    if (label < 0 || label >= std::ssize(model_.labels())) {
      throw Error("a text has a label that the model does not have.");
    }
    labels.push_back(label);
  }
  std::iota(indices.begin(), indices.end(), first_sentence);
  const TokenBatch text_batch =
      make_token_batch(context_, texts, encoder_.vocabulary(), first_sentence);
  const std::vector<std::int32_t> ones(texts.size(), 1);
  const Ragged label_rows = make_ragged(context_, ones, indices);
  std::vector<std::int32_t> padded = labels;
  padded.resize(static_cast<std::size_t>(label_rows.capacity), 0);
  const Variable summary = model_.summary(text_batch, label_rows);
  const VocabularyLoss loss =
      model_.label_loss(summary, label_rows, from_host(context_, padded, {label_rows.capacity}),
                        {.smoothing = training ? label_smoothing_ : 0});
  ObjectiveLoss result{loss.total, label_rows.rows, text_batch.rows.rows};
  if (!training) result.correct = count_correct(model_.label_scores(summary), labels);
  return result;
}

}  // namespace nunchi
