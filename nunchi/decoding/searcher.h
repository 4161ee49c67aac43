// Searches batch by batch: a loop over Search (decoding/search.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "nunchi/decoding/search.h"

namespace nunchi {

// Callback that gets the tokens of a hypothesis so far, and returns false to end the search.
using SearchWatch = std::function<bool(std::span<const std::int32_t> tokens)>;

// One batch of sentences.
struct SearchInput {
  std::optional<Source> source = {};      // for an encoder-decoder; a language model has none
  std::span<const Tokens> prefixes = {};  // the first tokens of each target; empty: no prefixes
  // The phrases that each target must contain; empty: none.
  std::span<const RequiredPhrases> phrases = {};
  // The number of each sentence selects its random draws; empty: 0, 1, …
  std::span<const std::int64_t> numbers = {};
  DecoderTokens tokens = {};     // without a start token, every prefix must have tokens
  BeamRecord* record = nullptr;  // see SearchSetup::record
  SearchWatch watch = {};  // called every few steps; only for one sentence with one hypothesis
};

// Returns up to n_best hypotheses for each sentence. An encoder-decoder has a sentence for each
// sentence of the source and runs on the source's context; a language model has one for each
// prefix, which it continues. Throws Error if the model's scores are not numbers.
std::vector<Hypotheses> search(const EncoderDecoder& model, const SearchInput& input,
                               const SearchOptions& options);
std::vector<Hypotheses> search(const LanguageModel& model, ContextBase& context,
                               const SearchInput& input, const SearchOptions& options);

// The same for one batch after another. On devices that replay captured steps, memory and captured
// steps are kept from batch to batch. The model and the context must outlive it; used by one thread
// at a time.
class Searcher {
 public:
  // Throws UsageError for invalid options.
  Searcher(const EncoderDecoder& model, const SearchOptions& options);
  Searcher(const LanguageModel& model, ContextBase& context, const SearchOptions& options);
  ~Searcher();

  std::vector<Hypotheses> operator()(const SearchInput& input);

 private:
  void prepare(ContextBase& context, const SearchInput& input,
               std::span<const PlannedSentence> sentences);
  std::vector<Hypotheses> run(const SearchRequest& request, const SearchWatch& watch);

  GeneratingModel model_;
  ContextBase* context_ = nullptr;  // null: the context of each source
  SearchOptions options_;
  std::unique_ptr<Search> search_;
};

}  // namespace nunchi
