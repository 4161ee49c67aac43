// Models that generate text, token by token, and the other abilities that a model can have.
//
//   state = model.make_state(context, limits)   for the units of a search, which enter and leave
//   model.add_sources(*state, source, …)        an encoder-decoder encodes new units' sources
//   hidden = model.step(*state, tokens)         the newest tokens of each hypothesis
//   scores = model.next_scores(hidden)          of the token that comes next
//
// Scores are most often hidden times a table of the vocabulary. A model that has such an
// output_table() leaves the product to the search, which finds the likeliest tokens
// (ops/decode/next_hypotheses.h), on some devices without storing all scores. The search calls
// next_scores() where it needs every score, for example to sample.
//
// Hypotheses may change their number and order from step to step: each names its parent in the step
// before.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nunchi/data/batch.h"
#include "nunchi/models/model.h"
#include "nunchi/nn/decoder_cache.h"
#include "nunchi/ops/vocabulary_loss.h"

namespace nunchi {

class SequenceModel {
 public:
  // What the model keeps for the units of a search, which enter and leave through the cache. Models
  // that keep more derive from it.
  class State {
   public:
    // Throws Error while a tape records or in training mode.
    State(ContextBase& context, const nn::DecoderCache::Options& options,
          const nn::CacheLimits& limits);
    virtual ~State() = default;

    nn::DecoderCache cache;
  };

  virtual ~SequenceModel() = default;
  virtual std::int64_t target_vocabulary() const = 0;
  // Upper bound for the tokens of a sentence on either side, <s> and </s> included.
  virtual std::int64_t max_length() const { return kUnlimitedLength; }
  // A state for a search within these limits. The context must not record.
  virtual std::unique_ptr<State> make_state(ContextBase& context,
                                            const nn::CacheLimits& limits) const = 0;
  // The hidden row of each hypothesis' newest token: [decode_capacity(H), C].
  virtual Tensor step(State& state, const nn::StepTokens& tokens) const = 0;
  // Called before steps are captured or replayed. Returns whether memory moved since the last call,
  // so that steps that were captured before must not be replayed.
  virtual bool prepare_replay(State& state) const = 0;
  // [rows of hidden, V], in the type that hidden's is summed in.
  virtual Tensor next_scores(const Tensor& hidden) const = 0;
  // [V, C]: next_scores(hidden) is hidden times its transpose. Undefined: it is something else.
  virtual Variable output_table() const { return {}; }
};

// An encoder-decoder: it generates a target from a source, and learns from pairs of them.
class TranslationModel : public SequenceModel {
 public:
  virtual ModelInputs inputs() const = 0;
  // Encodes sources. Sentence b's memory gets the state's memory rows from memory_begin[b] on
  // (DecoderCache::take_memory), and units whose first step comes next refer to it by b
  // (StepTokens::sources).
  virtual void add_sources(State& state, const Source& source,
                           std::span<const std::int64_t> memory_begin) const = 0;
  // The summed loss of the labels under teacher forcing.
  virtual VocabularyLoss loss(const PairBatch& batch,
                              const VocabularyLossOptions& options) const = 0;
};

// A language model: it continues a text, and learns from texts.
class LanguageModel : public SequenceModel {
 public:
  // The summed loss of the labels, each given the tokens before it.
  virtual VocabularyLoss loss(const TextBatch& batch,
                              const VocabularyLossOptions& options) const = 0;
};

// A model that reads whole texts and predicts masked tokens from all the others of their text.
class MaskedLanguageModel {
 public:
  virtual ~MaskedLanguageModel() = default;
  virtual std::int64_t vocabulary() const = 0;
  virtual std::int64_t width() const = 0;  // C
  // Upper bound for the tokens of a text, <s> and </s> included.
  virtual std::int64_t max_length() const { return kUnlimitedLength; }
  // The hidden row of each token, [T, C].
  virtual Variable hidden(const TokenBatch& text) const = 0;
  // For some hidden rows [R, C]: the scores of all tokens, [R, V], which are not recorded, and the
  // summed loss of the labels.
  virtual Tensor scores(const Variable& hidden, const Ragged& rows) const = 0;
  virtual VocabularyLoss loss(const Variable& hidden, const Ragged& rows, const Tensor& labels,
                              const VocabularyLossOptions& options) const = 0;
};

// A model that assigns a label to each text. `each` has one row for each text.
class Classifier {
 public:
  virtual ~Classifier() = default;
  // In the order of their scores. Empty: the model has not been trained to classify.
  virtual const std::vector<std::string>& labels() const = 0;
  // One row for each text as a whole, [texts, C].
  virtual Variable summary(const TokenBatch& texts, const Ragged& each) const = 0;
  // For summaries: the scores of all labels, [texts, labels], which are not recorded, and the
  // summed loss of the given ones.
  virtual Tensor label_scores(const Variable& summary) const = 0;
  virtual VocabularyLoss label_loss(const Variable& summary, const Ragged& each,
                                    const Tensor& labels,
                                    const VocabularyLossOptions& options) const = 0;
};

// Abilities: the interfaces above that a model implements. Every check of what a model can do goes
// through ability_of(), and needs no more of the model than its config.

// The model's interface, or null when it lacks the ability. A classifier without labels lacks it.
template <class Ability>
const Ability* ability_of(const Model& model) {
  return dynamic_cast<const Ability*>(&model);
}
template <>
const Classifier* ability_of(const Model& model);

// The same for callers that cannot do without. Each throws Error, naming the model's family and the
// commands that it can be used with, when the model lacks the ability.
const TranslationModel& as_translation_model(const Model& model);
const LanguageModel& as_language_model(const Model& model);
const MaskedLanguageModel& as_masked_language_model(const Model& model);
// For embedding texts.
const MaskedLanguageModel& as_embedding_model(const Model& model);
// For scoring: a TranslationModel or a LanguageModel.
const SequenceModel& as_scoring_model(const Model& model);
const Classifier& as_classifier(const Model& model);

}  // namespace nunchi
