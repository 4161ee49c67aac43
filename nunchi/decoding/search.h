// Searching for the sentences that a model finds likely, for anything that generates.
//
// The result for a sentence depends on that sentence and the options alone, to the bit: not on the
// batch it came in, nor on its place there.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "nunchi/models/sequence_model.h"

namespace nunchi {

struct SearchOptions {
  int beam_size = 1;     // 1: greedy
  double normalize = 1;  // scores are log-probabilities divided by length^normalize
  int n_best = 1;        // at most beam_size, unless sampling

  bool sample = false;     // draw tokens instead, n_best independent sentences
  std::int64_t top_k = 0;  // from the so many likeliest; 0: all
  double top_p = 1;        // from the likeliest that hold so much of the probability
  double temperature = 1;
  std::uint64_t seed = 0;

  std::int64_t min_length = 0;  // tokens, </s> not counted
  // And never more than 3 times the source's + 20; without a source, tokens beyond the prefix.
  std::int64_t max_length = 256;
  int no_repeat_ngram = 0;  // no n tokens in a row come twice; 0: allowed
  int max_repeats = 8;      // how often a few tokens may follow one another; 0: for ever

  // Throws UsageError for what makes no sense.
  void check() const;
};

// Told the tokens of a hypothesis so far; false: that is enough.
using SearchWatch = std::function<bool(std::span<const std::int32_t> tokens)>;

// What the search starts from.
struct SearchInput {
  std::optional<Source> source = {};           // of an encoder-decoder; a language model has none
  std::span<const Tokens> prefixes = {};       // what each target begins with; empty: nothing
  std::span<const std::int64_t> numbers = {};  // of the sentences, for draws; empty: 0, 1, 2, …
  DecoderTokens tokens = {};  // without a start token, prefixes begin the texts and are not empty
  SearchWatch watch = {};     // asked now and then; for one sentence and one hypothesis
};

struct Hypothesis {
  Tokens tokens;                    // forced first token and prefix included, the end token not
  std::vector<float> token_scores;  // log-probabilities; zero for a prefix; one more for </s>
  double log_probability = 0;       // their sum
  double score = 0;                 // normalised
  bool ended = false;               // by </s>; else cut at its maximum length
};

using Hypotheses = std::vector<Hypothesis>;  // best first

// n_best hypotheses, or fewer, for each sentence of the source, on the source's context; or for
// each prefix, which a language model continues. Throws Error when the model's scores are not
// numbers.
std::vector<Hypotheses> search(const TranslationModel& model, const SearchInput& input,
                               const SearchOptions& options);
std::vector<Hypotheses> search(const LanguageModel& model, ContextBase& context,
                               const SearchInput& input, const SearchOptions& options);

// The same for one batch after another. Memory is kept from batch to batch where the device gains
// by it. The model and the context outlive it; one thread at a time.
class Searcher {
 public:
  // Throws UsageError for options that make no sense.
  Searcher(const TranslationModel& model, const SearchOptions& options);
  Searcher(const LanguageModel& model, ContextBase& context, const SearchOptions& options);
  ~Searcher();

  std::vector<Hypotheses> operator()(const SearchInput& input);

 private:
  class Search;
  // One of the two is null.
  struct Searched {
    const TranslationModel* encoder_decoder = nullptr;
    const LanguageModel* language_model = nullptr;

    const SequenceModel& model() const {
      if (encoder_decoder != nullptr) return *encoder_decoder;
      return *language_model;
    }
  };

  std::vector<Hypotheses> forced(SearchInput input);

  Searched searched_;
  ContextBase* context_ = nullptr;  // null: each source brings its own
  SearchOptions options_;
  std::unique_ptr<Search> search_;
};

}  // namespace nunchi
