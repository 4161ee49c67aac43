// Several encoder-decoders that generate one target together.
//
// At each step, every member gives each token of the vocabulary a probability; that of the ensemble
// is their arithmetic mean. Members may differ in family, size and source tokenizer, but have the
// same target vocabulary. For a search, an ensemble is one more encoder-decoder: all its options
// work, and a sentence's result depends on that sentence only.
//
// The members' hidden rows differ in width, so step() computes the scores at once: the hidden rows
// of an ensemble are its scores, the logarithms of the mean probabilities.
#pragma once

#include <memory>
#include <vector>

#include "nunchi/models/sequence_model.h"

namespace nunchi {

// Members must outlive it.
class EnsembleModel final : public EncoderDecoder {
 public:
  // Throws Error for no members, for too many, and for different sizes of target vocabulary.
  explicit EnsembleModel(std::vector<const EncoderDecoder*> members);

  std::int64_t target_vocabulary() const override;
  // The least of the members'.
  std::int64_t max_length() const override;
  std::unique_ptr<State> make_state(ContextBase& context,
                                    const nn::CacheLimits& limits) const override;
  // The source is MemberSources with one source for each member, or one source for all of them.
  void add_sources(State& state, const Source& source,
                   std::span<const std::int64_t> memory_begin) const override;
  Tensor step(State& state, const nn::StepTokens& tokens) const override;
  bool prepare_replay(State& state) const override;
  Tensor next_scores(const Tensor& hidden) const override { return hidden; }

 private:
  std::vector<const EncoderDecoder*> members_;
};

}  // namespace nunchi
