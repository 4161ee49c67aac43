// T5's span corruption: some spans of a text are removed, each is replaced by a different symbol (a
// sentinel), and the decoder predicts the removed tokens.
//
//   text     Thank you for inviting me to your party last week .
//   source   Thank you <extra_id_0> me to your party <extra_id_1> week . </s>
//   target   <extra_id_0> for inviting <extra_id_1> last </s>
//
// The spans are drawn from (seed, step, sentence): they differ in each epoch and do not depend on
// the batch.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "nunchi/models/sequence_model.h"
#include "nunchi/training/config/train_config.h"
#include "nunchi/training/objectives/objectives.h"
#include "nunchi/training/objectives/text_draws.h"

namespace nunchi {

// A training example made from a text; both sides are without </s>.
struct CorruptedText {
  Tokens source;  // the kept tokens and the sentinels
  Tokens target;  // each sentinel, followed by the tokens that it replaces
};

// Removes at least one token and keeps at least one if the text has more than one. The options give
// the number of spans, which is at most the number of sentinels. All choices of spans that are at
// least one token apart are equally likely. Throws Error for a text without tokens.
CorruptedText corrupt_spans(const Tokens& text, const SpanCorruptionOptions& options,
                            std::span<const std::int32_t> sentinels, const TextDraws& draws);

// The tokenizer's <extra_id_0>, <extra_id_1>, … up to the first that it does not have.
std::vector<std::int32_t> sentinels_of(const Tokenizer& tokenizer);

inline constexpr std::array<std::string_view, 1> kFirstSentinel = {"<extra_id_0>"};

// Upper bound for the tokens of either side of a CorruptedText, <s> and </s> included. The lines
// have up to max_length tokens, </s> included.
std::int64_t max_corrupted_length(std::int64_t max_length, const TrainingOptions& options);

class SpanCorruptionObjective final : public Objective {
 public:
  // Throws Error when the model is not an encoder-decoder, when the two sides have different
  // tokenizers, or when the tokenizer has no sentinels.
  explicit SpanCorruptionObjective(const ObjectiveParts& parts);

  // The targets are lines of a text.
  ObjectiveLoss loss(const HostBatch& batch, std::int32_t first_sentence) const override;

 private:
  const TranslationModel& model_;
  ContextBase& context_;
  SpanCorruptionOptions options_;
  double label_smoothing_;
  std::int32_t source_end_;
  DecoderTokens tokens_;
  std::vector<std::int32_t> sentinels_;
};

}  // namespace nunchi
