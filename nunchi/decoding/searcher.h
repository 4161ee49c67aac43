// Search for one batch of sentences after another: a loop over Search (decoding/search.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "nunchi/decoding/search.h"

namespace nunchi {

// Gets the tokens of a hypothesis so far; returns false to end the search.
using SearchWatch = std::function<bool(std::span<const std::int32_t> tokens)>;

// What a batch starts from.
struct SearchInput {
  std::optional<Source> source = {};      // of an encoder-decoder; a language model has none
  std::span<const Tokens> prefixes = {};  // the beginning of each target; empty: none
  std::span<const std::int64_t> numbers =
      {};                     // of the sentences, for random numbers; empty: 0, 1, …
  DecoderTokens tokens = {};  // without a start token, prefixes begin the texts and are not empty
  SearchWatch watch = {};     // called every few steps; for one sentence with one hypothesis
};

// n_best hypotheses, or fewer, for each sentence of the source, on the source's context; or for
// each prefix, which a language model continues. Throws Error when the model's scores are not
// numbers.
std::vector<Hypotheses> search(const TranslationModel& model, const SearchInput& input,
                               const SearchOptions& options);
std::vector<Hypotheses> search(const LanguageModel& model, ContextBase& context,
                               const SearchInput& input, const SearchOptions& options);

// The same for one batch after another. Memory and captured steps are kept from batch to batch
// where the device gains by it. The model and the context outlive it; one thread at a time.
class Searcher {
 public:
  // Throws UsageError for options that make no sense.
  Searcher(const TranslationModel& model, const SearchOptions& options);
  Searcher(const LanguageModel& model, ContextBase& context, const SearchOptions& options);
  ~Searcher();

  std::vector<Hypotheses> operator()(const SearchInput& input);

 private:
  void prepare(ContextBase& context, const SearchInput& input,
               std::span<const PlannedSentence> sentences);
  std::vector<Hypotheses> run(const SearchRequest& request, const SearchWatch& watch);

  GeneratingModel model_;
  ContextBase* context_ = nullptr;  // null: each source brings its own
  SearchOptions options_;
  std::unique_ptr<Search> search_;
};

}  // namespace nunchi
