#include "nunchi/training/objectives/classification.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"
#include "nunchi/base/printable.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/text/unicode.h"
#include "nunchi/training/objectives/masked.h"
#include "nunchi/training/train_config.h"

namespace nunchi {
namespace {

constexpr std::size_t kMostLabels = 10'000;

// As tokenizers read it: spaces at its ends do not count.
std::string label_of(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r";
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == text.npos) return {};
  return nfc(repaired_utf8(text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1)));
}

// Calls see(label, reader) for each line of a part that can be an example.
void for_each_label(const CorpusPart& part,
                    const std::function<void(const std::string&, const PairReader&)>& see) {
  PairReader reader(part);
  for (RawPair pair; reader.next(pair);) {
    const std::string label = pair.cut ? std::string() : label_of(pair.target);
    if (!label.empty() && !pair.source.empty()) see(label, reader);
  }
}

}  // namespace

std::vector<std::string> labels_in(std::span<const CorpusPart> parts) {
  std::set<std::string> labels;
  for (const CorpusPart& part : parts) {
    for_each_label(part, [&](const std::string& label, const PairReader& reader) {
      if (!labels.insert(label).second || labels.size() <= kMostLabels) return;
      throw Error(files_of(part).back().string() + ":" + std::to_string(reader.line_number()) +
                  ": more than " + grouped(static_cast<std::int64_t>(kMostLabels)) +
                  " labels. A line is its text, a tab and its label; see "
                  "'data.train.target_column'.");
    });
  }
  if (labels.size() < 2) {
    throw Error(labels.empty() ? std::string("the training data have no labels.")
                               : "all training data have the label '" + printable(*labels.begin()) +
                                     "'; there is nothing to tell apart.");
  }
  return {labels.begin(), labels.end()};
}

void check_labels(const CorpusPart& part, std::span<const std::string> labels) {
  for_each_label(part, [&](const std::string& label, const PairReader& reader) {
    if (std::ranges::find(labels, label) != labels.end()) return;
    throw Error(files_of(part).back().string() + ":" + std::to_string(reader.line_number()) +
                ": the label '" + printable(label) +
                "' is neither in the training data nor among 'model.labels'.");
  });
}

ClassificationObjective::ClassificationObjective(const ObjectiveParts& parts)
    : model_(as_classifier(parts.model)),
      reader_(as_masked_language_model(parts.model)),
      context_(parts.context),
      tokenizer_(parts.tokenizers.target()),
      label_smoothing_(parts.options.label_smoothing) {
  const std::vector<std::string>& labels = model_.labels();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto [found, is_new] =
        numbers_.emplace(tokenizer_.encode(labels[i]), static_cast<std::int32_t>(i));
    if (!is_new) {
      throw Error("the tokenizer cannot tell the labels '" +
                  printable(labels[static_cast<std::size_t>(found->second)]) + "' and '" +
                  printable(labels[i]) + "' apart; call one of them something else.");
    }
  }
}

ObjectiveLoss ClassificationObjective::loss(const HostBatch& batch,
                                            std::int32_t first_sentence) const {
  const bool learning = context_.tape() != nullptr;
  std::vector<Tokens> texts;
  std::vector<std::int32_t> labels, indices(batch.sources.size());
  for (std::size_t i = 0; i < batch.sources.size(); ++i) {
    const std::span<const std::int32_t> source = batch.sources[i];  // with its </s>
    texts.push_back(
        enclosed(source.first(source.size() - 1), tokenizer_.special(), reader_.max_length()));
    auto found = numbers_.find(batch.targets[i]);
    // Some tokenizers keep the spaces at a label's ends.
    if (found == numbers_.end()) {
      found = numbers_.find(tokenizer_.encode(label_of(tokenizer_.decode(batch.targets[i]))));
    }
    if (found == numbers_.end()) {
      throw Error("the label '" + printable(tokenizer_.decode(batch.targets[i])) +
                  "' is none of the model's.");
    }
    labels.push_back(found->second);
  }
  std::iota(indices.begin(), indices.end(), first_sentence);
  const TokenBatch read = make_token_batch(context_, texts, reader_.vocabulary(), first_sentence);
  const std::vector<std::int32_t> ones(texts.size(), 1);
  const Ragged each = make_ragged(context_, ones, indices);
  std::vector<std::int32_t> padded = labels;
  padded.resize(static_cast<std::size_t>(each.capacity), 0);
  const Variable summary = model_.summary(read, each);
  const VocabularyLoss loss =
      model_.label_loss(summary, each, from_host(context_, padded, {each.capacity}),
                        {.smoothing = learning ? label_smoothing_ : 0});
  ObjectiveLoss result{loss.total, each.rows, read.rows.rows};
  if (!learning) result.right = count_right(model_.label_scores(summary), labels);
  return result;
}

}  // namespace nunchi
