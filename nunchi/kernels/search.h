// Search on the device: candidates, beams, samples, banned tokens.
//
// A search runs over units. A unit is a sentence to be generated, or one of several samples of it.
// It has its own index, options and limits, and up to `beam` finished hypotheses. A step processes
// the active units. Each has `width` adjacent rows, one for each of its hypotheses (one row in its
// first step, `beam` rows later): row r belongs to the (r / width)-th active unit. The result of a
// unit does not depend on other units.
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
  std::int64_t stream = 0;  // random stream: units with different streams draw independently
  std::uint64_t seed = 0;
  double temperature = 1;
  double top_p = 1;
  std::int64_t top_k = 0;            // 0: all tokens
  std::int32_t sample = 0;           // 1: tokens are sampled; 0: the most likely ones are taken
  std::int32_t prefix_length = 0;    // given tokens at the beginning of each hypothesis
  std::int32_t min_length = 0;       // </s> is banned while a hypothesis is shorter
  std::int32_t max_length = 0;       // hypotheses of this length are finished
  std::int32_t no_repeat_ngram = 0;  // n: no n-gram may occur twice; 0: no such rule
  std::int32_t max_repeats = 0;      // of cycles of up to kLongestCycle tokens; 0: no such rule

  static constexpr std::int64_t kLongestCycle = 8;
};

// Numbers that change from step to step, in device memory, so that a captured step can be replayed.
// Where `active` is given, the numbers of units and rows among a kernel's other arguments are upper
// bounds.
struct StepCounts {
  const std::int32_t* active = nullptr;  // [1] number of active units
  const std::int32_t* steps = nullptr;   // [1] number of steps before this one
  std::int64_t width = 1;                // rows per unit

  constexpr std::int64_t units(std::int64_t bound) const {
    return active != nullptr ? *active : bound;
  }
  constexpr std::int64_t rows(std::int64_t bound) const {
    return active != nullptr ? *active * width : bound;
  }
};

// Whether the tokens end with `repeats` copies of the same `period` tokens.
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

// The n most likely tokens of each row, most likely first; among equals, the lower id first. A row
// with a NaN among its logits gets NaN log-probabilities.
template <class T>
struct TopTokens {
  std::int64_t rows = 0;
  std::int64_t vocabulary = 0;  // V
  std::int64_t count = 1;       // n <= V
  const T* logits = nullptr;    // [R, V]
  // [R] log-sum-exp of the logits that BanTokens removed: log-probabilities are normalised over all
  // tokens, including the banned ones. Null: no tokens are banned.
  const double* banned = nullptr;
  Accumulator<T>* log_probs = nullptr;  // [R, n]
  std::int32_t* ids = nullptr;          // [R, n]

  const char* name() const { return "top_tokens"; }
  Work work() const { return {.bytes = static_cast<double>(rows * vocabulary) * sizeof(T)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const TopTokens<T>& p);

// Samples one token for each row whose unit has `sample` set, from softmax(logits / temperature)
// restricted to the top_k most likely tokens and then to the smallest set of them that holds top_p
// of the probability. The random number depends only on the unit's seed and stream and on the
// number of tokens generated so far. The results of other rows are left as they are.
template <class T>
struct SampleTokens {
  std::int64_t rows = 0;
  std::int64_t vocabulary = 0;
  StepCounts counts;
  SearchRows hypotheses;                 // only `unit` and `length` are read
  const UnitOptions* options = nullptr;  // [units]
  const T* logits = nullptr;             // [R, V]
  const double* banned = nullptr;        // [R] as in TopTokens
  // [R] the model's log-probability, before temperature, restrictions and bans.
  Accumulator<T>* log_probs = nullptr;
  std::int32_t* ids = nullptr;  // [R]

  const char* name() const { return "sample_tokens"; }
  Work work() const { return {.bytes = static_cast<double>(rows * vocabulary) * sizeof(T)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const SampleTokens<T>& p);

// Sets the logits of tokens that must not come next to -inf: suppressed tokens always, the end
// token before the minimum length, tokens that would repeat an n-gram, and tokens that would
// continue a cycle. The rules on repetition never ban the end token.
template <class T>
struct BanTokens {
  std::int64_t rows = 0;
  std::int64_t vocabulary = 0;
  std::int64_t stride = 0;
  std::int32_t suppressed_token = -1;  // the first suppressed token; -1: none
  std::int64_t suppressed_count = 0;
  const std::int32_t* suppressed = nullptr;  // [suppressed_count] further suppressed tokens
  std::int32_t end_token = -1;               // -1: none; then every min_length must be 0
  StepCounts counts;
  SearchRows hypotheses;
  const UnitOptions* options = nullptr;  // [units]
  // A summary of the options of all units, so that kernels can skip rules that no unit uses.
  bool any_ngram = false;       // whether a unit restricts n-grams
  std::int64_t max_banned = 0;  // the maximum of max_banned(unit) over all units
  T* logits = nullptr;          // [R, V]
  double* banned = nullptr;     // [R] log-sum-exp of the logits that were removed; may be null

  static constexpr bool kIsaIndependent = true;
  const char* name() const { return "ban_tokens"; }
  Work work() const { return {}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const BanTokens<T>& p);

// The maximum number of tokens that a unit's rules on cycles and minimum length ban in one row.
constexpr std::int64_t max_banned(const UnitOptions& unit) {
  // Cycles of different periods that all repeat at least kLongestCycle times continue with the same
  // token.
  const std::int64_t cycles = unit.max_repeats == 0 ? 0
                              : unit.max_repeats >= UnitOptions::kLongestCycle
                                  ? 1
                                  : UnitOptions::kLongestCycle;
  return cycles + (unit.min_length > 0 ? 1 : 0);
}

// The most likely tokens that are not banned: BanTokens and TopTokens, in one kernel where that is
// faster. A fused kernel may leave the logits of banned tokens unchanged.
template <class T>
struct TopAllowedTokens {
  BanTokens<T> bans;
  TopTokens<T> top;  // with the rows, logits and `banned` of `bans`

  static constexpr bool kIsaIndependent = true;
  const char* name() const { return top.name(); }
  Work work() const { return top.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const TopAllowedTokens<T>& p);

// The finished hypotheses of each unit, at most `beam`, in the order in which they finished.
struct FinishedRows {
  std::int32_t* tokens = nullptr;  // [units, beam, stride], without </s>
  float* token_scores = nullptr;   // [units, beam, stride], including the score of a final </s>
  double* score = nullptr;         // [units, beam] log-probability
  std::int32_t* length = nullptr;  // [units, beam] number of tokens, without </s>
  // [units, beam] 1: ended by </s>; 0: cut at the maximum length
  std::int32_t* ended_by_eos = nullptr;
  std::int32_t* count = nullptr;      // [units] number of finished hypotheses
  std::int32_t* unit_done = nullptr;  // [units] set to 1 when the unit is done
};

// One step of beam search. The candidates of a unit are taken in order of their scores: a </s>
// among the first `beam` finishes its hypothesis, and the first `beam` candidates that are not </s>
// continue. A unit is done when `beam` hypotheses have finished or its maximum length is reached;
// its rows are removed, and the remaining rows are compacted. With a beam of one and one candidate
// per row this is greedy search or sampling.
template <class T>
struct BeamStep {
  std::int64_t units = 0;       // units of this step
  std::int64_t width = 1;       // rows per unit in this step
  std::int64_t beam = 1;        // rows per unit in the next step
  std::int64_t candidates = 1;  // candidates per row
  std::int64_t stride = 0;
  StepCounts counts;
  std::int32_t end_token = -1;
  const T* log_probs = nullptr;          // [units * width, candidates], descending
  const std::int32_t* ids = nullptr;     // [units * width, candidates]
  const UnitOptions* options = nullptr;  // of all units, active or not
  SearchRows from, to;
  FinishedRows finished;
  // For units that join a search in which *first_unit units are already active: their rows are
  // written after the rows of those units, and first_parent is added to their parents.
  const std::int32_t* first_unit = nullptr;  // [1]; null: 0
  std::int64_t first_parent = 0;
  std::int32_t* parents = nullptr;  // [rows of `to`] the row of `from` that each row continues
  std::int32_t* next = nullptr;     // [rows of `to`] the newest token of each row
  std::int32_t* active = nullptr;   // [1] number of active units after this step
  std::int32_t* steps = nullptr;    // [1] number of steps including this one; may be null
  // The slots of a HostSignal, through which the host learns how many units are active after this
  // step. May be null.
  std::int64_t* signal = nullptr;

  // Active units whose rows come before those of this step's units.
  constexpr std::int64_t units_before() const { return first_unit != nullptr ? *first_unit : 0; }
  constexpr std::int64_t steps_after() const {
    return counts.steps != nullptr ? *counts.steps + 1 : 1;
  }
  // Reports to the signal, if there is one. write(slot, message) is the device's way to store into
  // a slot.
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
