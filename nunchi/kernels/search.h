// Searching for sentences, all on the device: candidates, beams, samples, what is banned.
//
// A search runs over units: a sentence that is translated, or one of its samples. Each unit has the
// same number of rows ("width": one in the first step, the beam's size later), one for each
// hypothesis, and they stand together: row r belongs to active unit r / width. Nothing of one unit
// depends on another.
#pragma once

#include <cstdint>

#include "nunchi/base/random.h"
#include "nunchi/kernels/rows.h"
#include "nunchi/kernels/run.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

// What changes from step to step, where it stands in device memory, so that a step can be replayed.
// The same numbers among a kernel's other arguments are upper bounds then.
struct StepNow {
  const std::int32_t* active = nullptr;     // [1] units
  const std::int32_t* generated = nullptr;  // [1] tokens of each hypothesis beyond its prefix
  std::int64_t width = 1;                   // rows of each unit

  constexpr std::int64_t units(std::int64_t bound) const {
    return active != nullptr ? *active : bound;
  }
  constexpr std::int64_t rows(std::int64_t bound) const {
    return active != nullptr ? *active * width : bound;
  }
  constexpr std::int64_t tokens(std::int64_t otherwise) const {
    return generated != nullptr ? *generated : otherwise;
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

// The n most likely tokens of each row, most likely first, of equals the lower id. A row with a
// logit that is no number has log-probabilities that are none.
template <class T>
struct TopTokens {
  std::int64_t rows = 0;
  std::int64_t vocabulary = 0;  // V
  std::int64_t count = 1;       // n <= V
  const T* logits = nullptr;    // [R, V]
  // [R] log Σ exp of logits that BanTokens took out: log-probabilities stay the model's. Null:
  // none.
  const double* banned = nullptr;
  Summed<T>* log_probs = nullptr;  // [R, n]
  std::int32_t* ids = nullptr;     // [R, n]

  const char* name() const { return "top_tokens"; }
  Work work() const { return {.bytes = static_cast<double>(rows * vocabulary) * sizeof(T)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const TopTokens<T>& p);

// One token of each row, drawn from softmax(logits / temperature) cut down to the top_k most likely
// and then to the smallest set of them that holds top_p of the probability. The draw's place is the
// unit's number and the position, so that it does not depend on the batch.
template <class T>
struct SampleTokens {
  std::int64_t rows = 0;
  std::int64_t vocabulary = 0;
  double temperature = 1;
  std::int64_t top_k = 0;  // 0: all
  double top_p = 1;
  std::uint64_t seed = 0;
  std::int32_t position = 0;  // tokens drawn before this one
  StepNow now;
  const std::int32_t* unit = nullptr;    // [R] active unit of the row
  const std::int64_t* stream = nullptr;  // [units] the unit's number for draws
  const T* logits = nullptr;             // [R, V]
  const double* banned = nullptr;        // [R] as in TopTokens
  Summed<T>* log_probs = nullptr;        // [R] of the model, before temperature, cuts and bans
  std::int32_t* ids = nullptr;           // [R]

  const char* name() const { return "sample_tokens"; }
  Work work() const { return {.bytes = static_cast<double>(rows * vocabulary) * sizeof(T)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const SampleTokens<T>& p);

// What the hypotheses of all rows are.
struct SearchRows {
  std::int32_t* tokens = nullptr;  // [rows, stride]
  float* token_scores = nullptr;   // [rows, stride]
  double* score = nullptr;         // [rows] log-probability so far
  std::int32_t* unit = nullptr;    // [rows]
};

// Logits of tokens that may not come next become -inf: suppressed tokens always, the end token
// before the minimum length, a token that would repeat an n-gram, and one that would go on
// repeating the same few tokens. Negative tokens do not exist.
template <class T>
struct BanTokens {
  std::int64_t rows = 0;
  std::int64_t vocabulary = 0;
  std::int64_t stride = 0;
  std::int32_t begin_token = -1;  // never comes
  std::int32_t end_token = -1;
  std::int64_t suppressed_count = 0;
  const std::int32_t* suppressed = nullptr;  // [suppressed_count] these never come either
  std::int64_t generated = 0;                // tokens of each hypothesis beyond its prefix
  StepNow now;
  std::int64_t min_length = 0;       // tokens before </s>
  std::int64_t no_repeat_ngram = 0;  // 0: allowed
  std::int64_t max_repeats = 0;      // of a cycle of at most kLongestCycle tokens; 0: any number
  SearchRows hypotheses;
  const std::int32_t* prefix_length = nullptr;  // [units]
  T* logits = nullptr;                          // [R, V]
  double* banned = nullptr;  // [R] log Σ exp of the logits that were taken out; null: not wanted

  static constexpr std::int64_t kLongestCycle = 8;
  static constexpr bool kIsaIndependent = true;
  const char* name() const { return "ban_tokens"; }
  Work work() const { return {}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const BanTokens<T>& p);

// The most likely of the tokens that may come next: both of them in one kernel where that is
// faster. What is banned may or may not be gone from the logits afterwards.
template <class T>
struct TopAllowed {
  BanTokens<T> bans;
  TopTokens<T> top;  // of the same rows; its `banned` is where the bans leave theirs

  static constexpr bool kIsaIndependent = true;
  const char* name() const { return top.name(); }
  Work work() const { return top.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const TopAllowed<T>& p);

// Finished hypotheses of each unit, at most `beam`, in the order in which they ended.
struct FinishedRows {
  std::int32_t* tokens = nullptr;  // [units, beam, stride], without </s>
  float* token_scores = nullptr;   // [units, beam, stride], with </s>'s if it ended
  double* score = nullptr;         // [units, beam] log-probability
  std::int32_t* length = nullptr;  // [units, beam] tokens
  std::int32_t* ended = nullptr;   // [units, beam] 1: by </s>; 0: cut at its maximum length
  std::int32_t* count = nullptr;   // [units]
};

// One step of beam search. Of all candidates of a unit in order of their sums, </s> among the first
// `beam` ends its hypothesis, and the first `beam` others go on. A unit is done when `beam`
// hypotheses have ended or its maximum length is reached; its rows then leave. What goes on is
// packed together. With a beam of one and one candidate this is greedy search, or sampling.
template <class T>
struct BeamStep {
  std::int64_t units = 0;  // active ones
  std::int64_t width = 1;  // rows of each now
  std::int64_t beam = 1;   // rows of each afterwards
  std::int64_t candidates = 1;
  std::int64_t stride = 0;
  std::int64_t generated = 0;  // tokens of each hypothesis beyond its prefix, before this step
  StepNow now;
  std::int32_t end_token = -1;
  const T* log_probs = nullptr;                 // [units * width, candidates], descending
  const std::int32_t* ids = nullptr;            // [units * width, candidates]
  const std::int32_t* prefix_length = nullptr;  // [all units]
  const std::int32_t* max_length = nullptr;     // [all units] tokens, prefix included
  SearchRows from, to;
  FinishedRows finished;
  // Of the rows that go on:
  std::int32_t* parents = nullptr;            // [units * beam] row they come from
  std::int32_t* next = nullptr;               // [units * beam] their newest token
  std::int32_t* row_source = nullptr;         // [units * beam] source sentence
  const std::int32_t* unit_source = nullptr;  // [all units]
  std::int32_t* active = nullptr;             // [1] units that go on
  std::int32_t* generated_next = nullptr;     // [1] generated + 1; may be null
  // The slots of a HostSignal: the host learns that step generated + 1 left so many units active.
  // May be null.
  std::int64_t* signal = nullptr;

  // Calls write(slot, message), by which each device writes to the signal, if there is one.
  template <class Write>
  constexpr void report(std::int64_t active_units, Write write) const {
    if (signal == nullptr) return;
    const std::int64_t step = now.tokens(generated) + 1;
    write(signal + step % HostSignal::kSlots, HostSignal::message_of(step, active_units));
  }
  static constexpr bool kIsaIndependent = true;
  const char* name() const { return "beam_step"; }
  Work work() const { return {}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const BeamStep<T>& p);

}  // namespace nunchi::kernels
