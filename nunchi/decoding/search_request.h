// Requests of sentences to enter a search, and the limits of each sentence.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "nunchi/decoding/required_phrases.h"
#include "nunchi/decoding/search_options.h"
#include "nunchi/models/sequence_model.h"

namespace nunchi {

// The model of a search: one of the two pointers is null.
struct GeneratingModel {
  const EncoderDecoder* encoder_decoder = nullptr;
  const LanguageModel* language_model = nullptr;

  GeneratingModel(const EncoderDecoder& model) : encoder_decoder(&model) {}
  GeneratingModel(const LanguageModel& model) : language_model(&model) {}
  const SequenceModel& model() const {
    if (encoder_decoder != nullptr) return *encoder_decoder;
    return *language_model;
  }
};

// Sentences that enter a search together: their sources are encoded and their prefixes are read in
// one batch.
struct SearchRequest {
  std::optional<Source> source = {};      // for an encoder-decoder; a language model has none
  std::span<const Tokens> prefixes = {};  // the first tokens of each target; empty: no prefixes
  // The phrases that each target must contain, for beam search only; empty: none.
  std::span<const RequiredPhrases> phrases = {};
  // The number of each sentence selects its random draws; empty: 0, 1, …
  std::span<const std::int64_t> numbers = {};
  std::span<const SearchOptions> options;  // one for each sentence, or one for all
};

// A sentence of a request with its limits.
struct PlannedSentence {
  SearchOptions options;
  Tokens prefix;                   // begins with the forced first token, if there is one
  RequiredPhrases phrases;         // that the target must contain
  std::int64_t number = 0;         // selects the random draws
  std::int64_t source = 0;         // index of the sentence in the request
  std::int64_t source_length = 0;  // 0 without a source
  std::int64_t max_length = 0;     // tokens, prefix included
  std::int64_t prompt = 0;         // tokens of its first step: the start token and the prefix

  std::int64_t sample_count() const { return options.sample ? options.n_best : 1; }
  // Tokens that the decoder reads at most: all but the last.
  std::int64_t max_tokens_read() const {
    return prompt + max_length - static_cast<std::int64_t>(prefix.size()) - 1;
  }
};

// Throws Error for a request that the model cannot fulfil, and UsageError for wrong options.
std::vector<PlannedSentence> plan_request(const GeneratingModel& model,
                                          const SearchRequest& request,
                                          const DecoderTokens& tokens);

}  // namespace nunchi
