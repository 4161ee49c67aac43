// Interfaces for the abilities of models; the first is generating text token by token:
//
//   state = model.make_state(context, limits)   memory for the units of a search
//   model.add_sources(*state, source, …)        an encoder-decoder encodes new units' sources
//   hidden = model.step(*state, tokens)         reads the newest tokens of each hypothesis
//   scores = model.next_scores(hidden)          the scores of the next token
//
// A unit is one input of a search with all its hypotheses; units enter and leave between steps.
//
// Most models multiply hidden by a table of the vocabulary to get scores. If a model has such an
// output_table(), the search multiplies by it and finds the likeliest tokens itself
// (ops/decode/next_hypotheses.h), on some devices without storing all scores. It calls
// next_scores() only when it needs every score, for example to sample.
//
// The number and order of hypotheses may change from step to step: each hypothesis names its parent
// in the previous step.
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
  // The model's state for the units of a search, which enter and leave through the cache. Models
  // with more state derive from it.
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
  // A state for a search within these limits. The context must be in evaluating mode without a
  // tape.
  virtual std::unique_ptr<State> make_state(ContextBase& context,
                                            const nn::CacheLimits& limits) const = 0;
  // The hidden row of each hypothesis' newest token: [decode_capacity(H), C].
  virtual Tensor step(State& state, const nn::StepTokens& tokens) const = 0;
  // Called before steps are captured or replayed. Returns whether memory has moved since the last
  // call: steps captured earlier must not be replayed then.
  virtual bool prepare_replay(State& state) const = 0;
  // [rows of hidden, V], in the accumulator type of hidden.
  virtual Tensor next_scores(const Tensor& hidden) const = 0;
  // [V, C], such that next_scores(hidden) is hidden times its transpose; undefined if the scores
  // are computed in another way.
  virtual Variable output_table() const { return {}; }
};

// An encoder-decoder: generates a target from a source.
class EncoderDecoder : public SequenceModel {
 public:
  // Encodes sources. Sentence b's memory is written to the state's memory rows from memory_begin[b]
  // on (DecoderCache::take_memory). In the next step, the units that take their first step refer to
  // it by b (StepTokens::sources).
  virtual void add_sources(State& state, const Source& source,
                           std::span<const std::int64_t> memory_begin) const = 0;
};

// An encoder-decoder that learns from pairs of source and target.
class TranslationModel : public EncoderDecoder {
 public:
  virtual InputSizes input_sizes() const = 0;
  // The summed loss of the labels under teacher forcing.
  virtual VocabularyLoss loss(const PairBatch& batch,
                              const VocabularyLossOptions& options) const = 0;
};

// A language model: continues a text and learns from texts.
class LanguageModel : public SequenceModel {
 public:
  // The summed loss of the labels, each given the tokens before it.
  virtual VocabularyLoss loss(const TextBatch& batch,
                              const VocabularyLossOptions& options) const = 0;
};

// A model that reads whole texts and predicts masked tokens from all other tokens of the text.
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

// A model that assigns a label to each text. `row_per_text` describes a batch with one row per
// text.
class Classifier {
 public:
  virtual ~Classifier() = default;
  // The class names in the order of their scores; empty: the model has not been trained to
  // classify.
  virtual const std::vector<std::string>& labels() const = 0;
  // One row that represents each text, [texts, C].
  virtual Variable summary(const TokenBatch& texts, const Ragged& row_per_text) const = 0;
  // For summaries: the scores of all labels, [texts, labels], which are not recorded, and the
  // summed loss of the true labels.
  virtual Tensor label_scores(const Variable& summary) const = 0;
  virtual VocabularyLoss label_loss(const Variable& summary, const Ragged& row_per_text,
                                    const Tensor& labels,
                                    const VocabularyLossOptions& options) const = 0;
};

// A model's abilities are the interfaces above that it implements. Every check of an ability goes
// through ability_of(), which works before the parameters are allocated.

// The interface, or null if the model lacks the ability. A classifier without labels lacks it.
template <class Ability>
const Ability* ability_of(const Model& model) {
  return dynamic_cast<const Ability*>(&model);
}
template <>
const Classifier* ability_of(const Model& model);

// The same for callers that need the ability. If the model lacks it, they throw an Error that names
// the model's family and the commands that support it.
const TranslationModel& as_translation_model(const Model& model);
const LanguageModel& as_language_model(const Model& model);
const MaskedLanguageModel& as_masked_language_model(const Model& model);
// For embedding texts.
const MaskedLanguageModel& as_embedding_model(const Model& model);
// For scoring: a TranslationModel or a LanguageModel.
const SequenceModel& as_scoring_model(const Model& model);
const Classifier& as_classifier(const Model& model);

}  // namespace nunchi
