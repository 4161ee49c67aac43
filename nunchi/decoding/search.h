// Search for the sentences that a model finds likely, for any model that generates.
//
//   Search search(model, context, {.limits = …});
//   search.admit({.source = source, .options = …});   sentences enter
//   while (search.step() > 0) …                       each active unit gets one token
//   search.collect()                                  sentences that are finished leave
//
// The search runs over units: a sentence, or each of its samples, is a unit of `beam_size`
// hypotheses. Each unit has its own position, limits and options; units enter and leave between
// steps. The result for a sentence depends on that sentence and its options only, not on the other
// sentences or on the step at which it entered: to the bit on the CPU, and on a GPU with a
// deterministic context.
//
// Memory has hard bounds. What a sentence can need at most is set aside when it enters, so that it
// never runs out of memory later; a sentence that does not fit has to wait until others have left.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nunchi/decoding/beam_record.h"
#include "nunchi/decoding/search_memory.h"
#include "nunchi/decoding/search_options.h"
#include "nunchi/decoding/search_request.h"
#include "nunchi/decoding/search_units.h"
#include "nunchi/decoding/step_replay.h"
#include "nunchi/models/sequence_model.h"

namespace nunchi {

// The hard bounds of a search.
struct SearchLimits {
  std::int64_t units = 1;          // sentences, or samples of them, at a time
  std::int64_t beam_size = 1;      // of every unit
  std::int64_t max_tokens = 256;   // of a hypothesis, prefix included
  std::int64_t cached_tokens = 0;  // of all hypotheses; 0: as many as all units can have
  std::int64_t source_rows = 0;    // tokens, or rows of features, of all sources
  std::int64_t source_length = 0;  // of one source
};

struct SearchSetup {
  SearchLimits limits;
  DecoderTokens tokens = {};  // without a start token, prefixes begin the texts and are not empty
  // Receives what the search considers, for a search of one unit that takes the likeliest tokens.
  // It outlives the search. Null: nothing is recorded.
  BeamRecord* record = nullptr;
};

// The result for a sentence. No hypotheses: the model's scores were not numbers.
struct FoundSentence {
  std::int64_t id = 0;
  Hypotheses hypotheses;  // at most n_best
};

// Model and context outlive it; used by one thread at a time.
class Search {
 public:
  Search(GeneratingModel model, ContextBase& context, const SearchSetup& setup);
  ~Search();
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  // Lets sentences in, or refuses them while too little is free. Throws Error for a request that is
  // wrong or can never fit, and UsageError for wrong options.
  Admission admit(const SearchRequest& request);
  // Takes a step, or up to `max_steps` steps where the device gains by it: each gives every active
  // unit one token. Returns the number of active units.
  std::int64_t step(std::int64_t max_steps = 1);
  // The sentences that have finished since the last call, in the order in which they entered. Their
  // ids and units become free.
  std::vector<FoundSentence> collect();

  // The hypothesis of an active sentence as it is now; nothing when it has finished. Only for
  // sentences of one hypothesis.
  std::optional<Hypothesis> current_hypothesis(std::int64_t id) const;
  // All sentences leave without a result.
  void clear();

  std::int64_t active_units() const { return active_; }
  std::int64_t steps() const { return steps_; }  // taken so far, first steps of sentences included
  std::int64_t free_units() const { return units_.free_count(); }
  std::int64_t free_cached_tokens() const { return state_->cache.free_slots(); }
  std::int64_t free_source_rows() const { return state_->cache.free_memory_rows(); }
  const SearchSetup& setup() const { return setup_; }
  ContextBase& context() const { return context_; }

 private:
  using Sentence = SearchUnits::Sentence;
  struct StepRows;
  struct StepKind;

  std::vector<Sentence> planned(const SearchRequest& request) const;
  void check_limits(const PlannedSentence& sentence) const;
  void restart();
  void enter(const SearchRequest& request, std::vector<Sentence>& sentences);
  nn::StepTokens first_tokens(std::span<const Sentence> sentences);
  nn::StepTokens next_tokens(std::int64_t units, bool counted) const;

  bool replays() const { return setup_.record == nullptr && replay_.enabled(); }
  StepReplay::Result replay_steps(std::int64_t steps);
  void take_step(std::int64_t units, bool counted);
  void provide_slots(std::int64_t steps);
  void choose(const Tensor& hidden, const StepRows& step);
  struct Considered;
  std::int32_t finished_count() const;
  void record(const Considered& considered) const;
  void add_kind(StepKind& kind, std::int64_t unit) const;
  StepKind kind_of_units() const;
  void swap_buffers();
  void release_finished();
  Hypotheses results(const Sentence& sentence, const kernels::FinishedRows& rows) const;

  GeneratingModel generating_;
  const SequenceModel& model_;
  ContextBase& context_;
  SearchSetup setup_;
  std::int64_t beam_, stride_;
  std::int64_t candidates_;  // of each row
  ActiveHypotheses current_, next_hypotheses_, entering_;
  bool swapped_ = false;  // current_ and next_hypotheses_, an odd number of times
  FinishedHypotheses finished_;
  UnitOptionsBuffer options_;
  UnitPhrasesBuffer phrases_;
  Tensor suppressed_;     // i32: all suppressed tokens but the first; undefined: no more
  Tensor banned_;         // f64 [rows] of a step
  Tensor next_tokens_;    // i32 [rows] the newest tokens
  Tensor parents_;        // i32 [rows] the rows that their hypotheses come from
  Tensor counts_before_;  // i32 [2] the counts before units enter
  StepReplay replay_;
  std::unique_ptr<SequenceModel::State> state_;
  SearchUnits units_;
  std::int64_t active_ = 0;  // units that the next step may continue
  std::int64_t steps_ = 0;   // of all units, first ones included
};

}  // namespace nunchi
