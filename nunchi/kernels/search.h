// Search on the device: candidates, beams, samples, banned tokens.
//
// A search runs over units. A unit is a sentence to be generated, or one of its samples; it has an
// index, options and limits of its own, and up to `beam` finished hypotheses. Active units take
// part in steps: each has `width` rows (one in its first step, the beam size later), one for each
// hypothesis, and the rows of a unit are adjacent: row r belongs to the (r / width)-th active unit.
// The result of a unit does not depend on other units.
#pragma once

#include <cstdint>

#include "nunchi/base/random.h"
#include "nunchi/device/host_signal.h"
#include "nunchi/kernels/rows.h"
#include "nunchi/kernels/run.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

// The options and limits of one unit, in device memory. Lengths are in tokens and include the
// prefix but not </s>.
struct UnitOptions {
  std::int64_t stream = 0;  // of random numbers: units with different streams draw independently
  std::uint64_t seed = 0;
  double temperature = 1;
  double top_p = 1;
  std::int64_t top_k = 0;            // 0: all
  std::int32_t sample = 0;           // 1: tokens are drawn; 0: the most likely ones are taken
  std::int32_t prefix_length = 0;    // given tokens at the beginning of each hypothesis
  std::int32_t min_length = 0;       // </s> is banned before
  std::int32_t max_length = 0;       // the unit finishes there
  std::int32_t no_repeat_ngram = 0;  // no n-gram comes twice; 0: allowed
  std::int32_t max_repeats = 0;      // of a cycle of at most kLongestCycle tokens; 0: any number

  static constexpr std::int64_t kLongestCycle = 8;
};

// The numbers that change from step to step, in device memory, so that a captured step can be
// replayed. Where they are given, the same numbers among a kernel's other arguments are upper
// bounds.
struct StepCounts {
  const std::int32_t* active = nullptr;  // [1] units
  const std::int32_t* steps = nullptr;   // [1] steps before this one
  std::int64_t width = 1;                // rows of each unit

  constexpr std::int64_t units(std::int64_t bound) const {
    return active != nullptr ? *active : bound;
  }
  constexpr std::int64_t rows(std::int64_t bound) const {
    return active != nullptr ? *active * width : bound;
  }
};

// Whether the last tokens are a cycle of `period` tokens that has come `repeats` times.
constexpr bool is_cycle(const std::int32_t* tokens, std::int64_t length, std::int64_t period,
                        std::int64_t repeats) {
  if (length < period * repeats) return false;
  for (std::int64_t i = length - period * repeats; i < length - period; ++i) {
    if (tokens[i] != tokens[i + period]) return false;
  }
  return true;
}

// The hypotheses of all rows.
struct SearchRows {
  std::int32_t* tokens = nullptr;  // [rows, stride]
  float* token_scores = nullptr;   // [rows, stride]
  double* score = nullptr;         // [rows] log-probability so far
  std::int32_t* unit = nullptr;    // [rows] index of the unit
  std::int32_t* length = nullptr;  // [rows] tokens so far, the same for all rows of a unit
};

// The n most likely tokens of each row, most likely first, of equals the lower id. A row with a NaN
// among its logits has NaN log-probabilities.
template <class T>
struct TopTokens {
  std::int64_t rows = 0;
  std::int64_t vocabulary = 0;  // V
  std::int64_t count = 1;       // n <= V
  const T* logits = nullptr;    // [R, V]
  // [R] log Σ exp of the logits that BanTokens removed, so that log-probabilities stay the model's.
  // Null: none.
  const double* banned = nullptr;
  Accumulator<T>* log_probs = nullptr;  // [R, n]
  std::int32_t* ids = nullptr;          // [R, n]

  const char* name() const { return "top_tokens"; }
  Work work() const { return {.bytes = static_cast<double>(rows * vocabulary) * sizeof(T)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const TopTokens<T>& p);

// One token of each row whose unit samples, drawn from softmax(logits / temperature) restricted to
// the top_k most likely tokens and then to the smallest set of them that holds top_p of the
// probability. The random number depends on the unit's seed and stream and on the number of tokens
// generated so far only. The results of other rows are left as they are.
template <class T>
struct SampleTokens {
  std::int64_t rows = 0;
  std::int64_t vocabulary = 0;
  StepCounts counts;
  SearchRows hypotheses;                 // of which units and lengths are read
  const UnitOptions* options = nullptr;  // [units]
  const T* logits = nullptr;             // [R, V]
  const double* banned = nullptr;        // [R] as in TopTokens
  Accumulator<T>* log_probs =
      nullptr;                  // [R] of the model, before temperature, restrictions and bans
  std::int32_t* ids = nullptr;  // [R]

  const char* name() const { return "sample_tokens"; }
  Work work() const { return {.bytes = static_cast<double>(rows * vocabulary) * sizeof(T)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const SampleTokens<T>& p);

// Sets the logits of tokens that may not come next to -inf: suppressed tokens always, the end token
// before the minimum length, a token that would repeat an n-gram, and one that would continue a
// cycle. Negative tokens do not exist.
template <class T>
struct BanTokens {
  std::int64_t rows = 0;
  std::int64_t vocabulary = 0;
  std::int64_t stride = 0;
  std::int32_t suppressed_token = -1;  // is never generated
  std::int64_t suppressed_count = 0;
  const std::int32_t* suppressed = nullptr;  // [suppressed_count] nor are these
  std::int32_t end_token = -1;
  StepCounts counts;
  SearchRows hypotheses;
  const UnitOptions* options = nullptr;  // [units]
  // What the host knows about the options of all units; kernels leave out work that none needs.
  bool any_ngram = false;  // some unit restricts n-grams
  std::int64_t most_banned =
      0;                // tokens that rules on cycles and minimum lengths ban in a row, at most
  T* logits = nullptr;  // [R, V]
  double* banned = nullptr;  // [R] log Σ exp of the logits that were removed; may be null

  static constexpr bool kIsaIndependent = true;
  const char* name() const { return "ban_tokens"; }
  Work work() const { return {}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const BanTokens<T>& p);

// The number of tokens that a unit's rules on cycles and on its minimum length can ban in one row.
constexpr std::int64_t most_banned(const UnitOptions& unit) {
  // Cycles that came at least as often as the longest is long all continue with the same token.
  const std::int64_t cycles = unit.max_repeats == 0 ? 0
                              : unit.max_repeats >= UnitOptions::kLongestCycle
                                  ? 1
                                  : UnitOptions::kLongestCycle;
  return cycles + (unit.min_length > 0 ? 1 : 0);
}

// The most likely tokens that may come next: both in one kernel where that is faster. Banned tokens
// may or may not be removed from the logits.
template <class T>
struct TopAllowed {
  BanTokens<T> bans;
  TopTokens<T> top;  // of the same rows; reads `banned` where `bans` writes it

  static constexpr bool kIsaIndependent = true;
  const char* name() const { return top.name(); }
  Work work() const { return top.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const TopAllowed<T>& p);

// Finished hypotheses of each unit, at most `beam`, in the order in which they ended.
struct FinishedRows {
  std::int32_t* tokens = nullptr;  // [units, beam, stride], without </s>
  float* token_scores = nullptr;   // [units, beam, stride], with that of </s> if it ended
  double* score = nullptr;         // [units, beam] log-probability
  std::int32_t* length = nullptr;  // [units, beam] tokens
  std::int32_t* ended = nullptr;   // [units, beam] 1: by </s>; 0: cut at its maximum length
  std::int32_t* count = nullptr;   // [units]
  std::int32_t* done = nullptr;    // [units] becomes 1 when the unit leaves the search
};

// One step of beam search. Of all candidates of a unit, in order of their scores, </s> among the
// first `beam` finishes its hypothesis, and the first `beam` others continue. A unit is done when
// `beam` hypotheses have finished or its maximum length is reached; its rows are removed, and the
// remaining rows are packed together. With a beam of one and one candidate this is greedy search,
// or sampling.
template <class T>
struct BeamStep {
  std::int64_t units = 0;  // active ones
  std::int64_t width = 1;  // rows of each in this step
  std::int64_t beam = 1;   // rows of each in the next step
  std::int64_t candidates = 1;
  std::int64_t stride = 0;
  StepCounts counts;
  std::int32_t end_token = -1;
  const T* log_probs = nullptr;          // [units * width, candidates], descending
  const std::int32_t* ids = nullptr;     // [units * width, candidates]
  const UnitOptions* options = nullptr;  // [all units]
  SearchRows from, to;
  FinishedRows finished;
  // Units that enter a search with active ones: their rows come after those of *first_unit active
  // units, and a row's parent is counted from first_parent.
  const std::int32_t* first_unit = nullptr;  // [1]; null: none are before them
  std::int64_t first_parent = 0;
  // Of the rows that continue:
  std::int32_t* parents = nullptr;  // [rows of `to`] row of `from` + first_parent
  std::int32_t* next = nullptr;     // [rows of `to`] the newest token
  std::int32_t* active = nullptr;   // [1] active units after this step
  std::int32_t* steps = nullptr;    // [1] steps up to this one; may be null
  // The slots of a HostSignal, by which the host learns how many units are active after this step.
  // May be null.
  std::int64_t* signal = nullptr;

  constexpr std::int64_t units_before() const { return first_unit != nullptr ? *first_unit : 0; }
  constexpr std::int64_t steps_after() const {
    return counts.steps != nullptr ? *counts.steps + 1 : 1;
  }
  // Calls write(slot, message), by which each device writes to the signal, if there is one.
  template <class Write>
  constexpr void report(std::int64_t active_units, Write write) const {
    if (signal == nullptr) return;
    const std::int64_t step = steps_after();
    write(signal + step % HostSignal::kSlots, HostSignal::message_of(step, active_units));
  }
  static constexpr bool kIsaIndependent = true;
  const char* name() const { return "beam_step"; }
  Work work() const { return {}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const BeamStep<T>& p);

}  // namespace nunchi::kernels
