// Phrases that the target of a unit must contain: constrained beam search.
//
// A hypothesis may end only when it contains every phrase of its unit. In each step, the tokens
// that begin or continue a missing phrase are candidates beside the likeliest tokens. The beam is
// divided among banks: bank n has the hypotheses that contain or have begun n phrases, so that
// hypotheses with a phrase, which are less likely at first, are not crowded out (Post and Vilar,
// "Fast Lexically Constrained Decoding with Dynamic Beam Allocation", 2018; their banks count
// tokens). Near the maximum length, only candidates that leave enough tokens for all missing
// phrases remain. A hypothesis that would end now, but lacks phrases, can only go on with a phrase:
// otherwise it would ramble until the maximum length.
//
// The kernels come around those of an ordinary step, in this order:
//   PhraseCandidates   the next tokens of missing phrases, with their logits
//   BanTokens          which never prevents a phrase, because its logits are known already
//   TopTokens
//   ChooseCandidates   replaces the candidates of constrained units, so that BeamStep takes them
//   BeamStep
// Units without phrases are left as they are. What a hypothesis contains is computed from its
// tokens at each step: there is no state to reorder.
#pragma once

#include <cstdint>
#include <limits>

#include "nunchi/kernels/search.h"

namespace nunchi::kernels {

// The phrases of one unit. Each has up to kForms forms, of which a target must contain one: a word
// has other tokens after a space than after an opening bracket. If a target must contain a phrase
// twice, the unit has it twice.
struct UnitPhrases {
  static constexpr int kMaxPhrases = 16, kForms = 2, kMaxTokens = 256;

  std::int32_t count = 0;  // of phrases; 0: the unit is not constrained
  // Form f of phrase i has tokens[begin[n]] to tokens[begin[n + 1] - 1], n = i · kForms + f. The
  // first form has at least one token; the second form may be missing.
  std::int32_t begin[kMaxPhrases * kForms + 1] = {};
  std::int32_t tokens[kMaxTokens] = {};

  constexpr std::int32_t form_length(int n) const { return begin[n + 1] - begin[n]; }
  constexpr bool has_form(int n) const { return form_length(n) > 0; }
  constexpr std::int32_t shortest_form(int phrase) const {
    const int n = phrase * kForms;
    return has_form(n + 1) && form_length(n + 1) < form_length(n) ? form_length(n + 1)
                                                                  : form_length(n);
  }
  constexpr std::uint32_t all() const { return (1u << count) - 1; }
};

// The phrases that a hypothesis contains.
struct PhraseState {
  std::uint32_t met = 0;   // bit i: it contains phrase i
  std::int32_t begin = 0;  // tokens before this position belong to contained phrases or before them
};

// The beginning of a phrase at the end of a hypothesis, or what is missing if there is none.
struct PhraseProgress {
  std::int32_t missing = 0;  // the fewest tokens that complete all missing phrases
  bool begun = false;        // the last tokens begin a missing phrase
};

// A hypothesis: `length` tokens.
struct PhraseTokens {
  const std::int32_t* tokens = nullptr;
  std::int64_t length = 0;
  std::int32_t last = -1;  // one more token; -1: none

  constexpr std::int64_t size() const { return length + (last >= 0 ? 1 : 0); }
  constexpr std::int32_t operator[](std::int64_t i) const { return i < length ? tokens[i] : last; }
};

// Whether the tokens up to `end` end with the first `count` tokens of form n and do not reach into
// tokens before `begin`.
constexpr bool ends_with_form(const UnitPhrases& p, int n, std::int64_t count,
                              const PhraseTokens& x, std::int64_t end, std::int64_t begin) {
  if (end - count < begin) return false;
  for (std::int64_t i = 0; i < count; ++i) {
    if (x[end - count + i] != p.tokens[p.begin[n] + i]) return false;
  }
  return true;
}

// Updates the state with the token at `end` - 1. If it completes several phrases, the longest form
// counts, so that "New York" is preferred to "York".
constexpr void advance(const UnitPhrases& p, const PhraseTokens& x, std::int64_t end,
                       PhraseState& state) {
  int best = -1;
  for (int n = 0; n < p.count * UnitPhrases::kForms; ++n) {
    if ((state.met >> (n / UnitPhrases::kForms) & 1) != 0 || !p.has_form(n)) continue;
    if (best >= 0 && p.form_length(n) <= p.form_length(best)) continue;
    if (ends_with_form(p, n, p.form_length(n), x, end, state.begin)) best = n;
  }
  if (best < 0) return;
  state.met |= 1u << (best / UnitPhrases::kForms);
  state.begin = static_cast<std::int32_t>(end);
}

constexpr PhraseState phrase_state(const UnitPhrases& p, const PhraseTokens& x) {
  PhraseState state;
  for (std::int64_t end = 1; end <= x.size(); ++end) advance(p, x, end, state);
  return state;
}

// How many tokens of form n, but not all of them, the tokens end with.
constexpr std::int32_t begun_tokens(const UnitPhrases& p, int n, const PhraseTokens& x,
                                    const PhraseState& state) {
  for (std::int32_t count = p.form_length(n) - 1; count > 0; --count) {
    if (ends_with_form(p, n, count, x, x.size(), state.begin)) return count;
  }
  return 0;
}

constexpr PhraseProgress phrase_progress(const UnitPhrases& p, const PhraseTokens& x,
                                         const PhraseState& state) {
  PhraseProgress progress;
  std::int32_t most_saved = 0;
  for (int i = 0; i < p.count; ++i) {
    if ((state.met >> i & 1) != 0) continue;
    const std::int32_t shortest = p.shortest_form(i);
    progress.missing += shortest;
    for (int n = i * UnitPhrases::kForms; n < (i + 1) * UnitPhrases::kForms; ++n) {
      if (!p.has_form(n)) continue;
      const std::int32_t begun = begun_tokens(p, n, x, state);
      if (begun == 0) continue;
      progress.begun = true;
      const std::int32_t saved = shortest - (p.form_length(n) - begun);
      if (saved > most_saved) most_saved = saved;
    }
  }
  // Only one phrase can be continued: the others start anew.
  progress.missing -= most_saved;
  return progress;
}

constexpr int phrases_met(const PhraseState& state) {
  int met = 0;
  for (std::uint32_t bits = state.met; bits != 0; bits &= bits - 1) ++met;
  return met;
}

// The next tokens of the missing phrases of each row, at most kNextTokens, and their logits before
// tokens are banned. Rows of units without phrases are left as they are.
inline constexpr int kNextTokens = UnitPhrases::kMaxPhrases * UnitPhrases::kForms;

template <class T>
struct PhraseCandidates {
  std::int64_t rows = 0;
  std::int64_t vocabulary = 0;
  std::int64_t stride = 0;
  StepCounts counts;
  SearchRows hypotheses;
  const UnitPhrases* phrases = nullptr;  // [units]
  const T* logits = nullptr;             // [R, V]
  std::int32_t* ids = nullptr;           // [R, kNextTokens]; -1 after the last
  T* values = nullptr;                   // [R, kNextTokens]

  // Finds the candidates of one row.
  constexpr void find(std::int64_t row) const {
    const UnitPhrases& p = phrases[hypotheses.unit[row]];
    if (p.count == 0) return;
    const PhraseTokens x{.tokens = hypotheses.tokens + row * stride,
                         .length = hypotheses.length[row]};
    const PhraseState state = phrase_state(p, x);
    std::int32_t* const found = ids + row * kNextTokens;
    int count = 0;
    for (int n = 0; n < p.count * UnitPhrases::kForms; ++n) {
      if ((state.met >> (n / UnitPhrases::kForms) & 1) != 0 || !p.has_form(n)) continue;
      const std::int32_t token = p.tokens[p.begin[n] + begun_tokens(p, n, x, state)];
      bool known = false;
      for (int i = 0; i < count; ++i) known = known || found[i] == token;
      if (known) continue;
      found[count] = token;
      values[row * kNextTokens + count++] = logits[row * vocabulary + token];
    }
    if (count < kNextTokens) found[count] = -1;
  }

  static constexpr bool kIsaIndependent = true;
  const char* name() const { return "phrase_candidates"; }
  Work work() const { return {}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const PhraseCandidates<T>& p);

// Replaces the candidates of units with phrases by those that the next beam consists of: the best
// of each bank, then the best of all. A </s> stays a candidate of hypotheses that contain all
// phrases. The remaining candidates of a row get a log-probability of -inf.
template <class T>
struct ChooseCandidates {
  // A hypothesis extended by one token.
  struct Candidate {
    double score = 0;
    T log_prob = 0;
    std::int32_t token = 0;
    std::int32_t bank = 0;
    std::int32_t taken = 0;
  };

  PhraseCandidates<T> next;  // computed before; its logits may have been banned since
  std::int64_t units = 0;
  std::int64_t width = 1;
  std::int64_t beam = 1;
  std::int64_t candidates = 1;  // per row; at least beam + 1, or the whole vocabulary
  std::int32_t end_token = -1;
  const UnitOptions* options = nullptr;  // [units]
  T* log_probs = nullptr;                // [R, candidates] from TopTokens, descending; replaced
  std::int32_t* ids = nullptr;           // [R, candidates]; replaced
  Candidate* pool = nullptr;             // [R, pool_size()] memory of the kernel

  constexpr std::int64_t pool_size() const { return candidates + kNextTokens; }

  // Lists a row's candidates in the pool.
  constexpr void list(std::int64_t row) const {
    const SearchRows& hypotheses = next.hypotheses;
    const std::int32_t unit = hypotheses.unit[row];
    const UnitPhrases& p = next.phrases[unit];
    if (p.count == 0) return;
    Candidate* const to = pool + row * pool_size();
    for (std::int64_t i = 0; i < pool_size(); ++i) to[i] = {.token = -1};
    const double row_score = hypotheses.score[row];
    T* const top_log_probs = log_probs + row * candidates;
    std::int32_t* const top_ids = ids + row * candidates;
    const T best = top_log_probs[0];
    const std::int32_t best_id = top_ids[0];
    // False for a placeholder and if the scores are not numbers.
    const bool usable = row_score > -kInfinity && best > -kInfinity;
    const std::int64_t length = hypotheses.length[row];
    const PhraseTokens x{.tokens = hypotheses.tokens + row * next.stride, .length = length};
    const PhraseState state = usable ? phrase_state(p, x) : PhraseState{};
    const std::int64_t tokens_left = options[unit].max_length - (length + 1);
    std::int64_t count = 0;
    const auto offer = [&](std::int32_t token, T log_prob) {
      if (!(log_prob > -kInfinity)) return;
      for (std::int64_t i = 0; i < count; ++i) {
        if (to[i].token == token) return;
      }
      Candidate c{
          .score = row_score + static_cast<double>(log_prob), .log_prob = log_prob, .token = token};
      if (token == end_token) {
        if (state.met != p.all()) return;
      } else {
        const PhraseTokens longer{.tokens = x.tokens, .length = length, .last = token};
        PhraseState after = state;
        advance(p, longer, length + 1, after);
        const PhraseProgress progress = phrase_progress(p, longer, after);
        if (progress.missing > tokens_left) return;
        c.bank = phrases_met(after) + (progress.begun ? 1 : 0);
      }
      to[count++] = c;
    };
    if (usable) {
      const bool only_phrases = best_id == end_token && state.met != p.all();
      for (std::int64_t i = 0; i < candidates && !only_phrases; ++i) {
        offer(top_ids[i], top_log_probs[i]);
      }
      const double log_sum = static_cast<double>(next.logits[row * next.vocabulary + best_id]) -
                             static_cast<double>(best);
      const std::int32_t* const next_ids = next.ids + row * kNextTokens;
      const T* const next_values = next.values + row * kNextTokens;
      for (int i = 0; i < kNextTokens && next_ids[i] >= 0; ++i) {
        offer(next_ids[i], static_cast<T>(static_cast<double>(next_values[i]) - log_sum));
      }
    }
    for (std::int64_t i = 0; i < candidates; ++i) {
      top_log_probs[i] = -kInfinity;
      top_ids[i] = 0;
    }
  }

  // Chooses among the listed candidates of active unit u and writes them to the rows' candidates.
  constexpr void choose(std::int64_t u) const {
    const std::int64_t first_row = u * width;
    const UnitPhrases& p = next.phrases[next.hypotheses.unit[first_row]];
    if (p.count == 0) return;
    Candidate* const all = pool + first_row * pool_size();
    const std::int64_t size = width * pool_size();
    constexpr std::int32_t kAnyBank = -1;
    // Takes the best candidate of a bank that is not taken; false if there is none.
    const auto take = [&](std::int32_t bank) {
      std::int64_t best = -1;
      for (std::int64_t i = 0; i < size; ++i) {
        if (all[i].token < 0 || all[i].taken != 0 || all[i].token == end_token) continue;
        if (bank != kAnyBank && all[i].bank != bank) continue;
        if (best < 0 || all[i].score > all[best].score) best = i;
      }
      if (best < 0) return false;
      all[best].taken = 1;
      return true;
    };
    const std::int64_t banks = p.count + 1, least = beam / banks, more = beam % banks;
    std::int64_t taken = 0;
    for (std::int64_t bank = p.count; bank >= 0; --bank) {
      // The banks with most phrases get what is left over.
      const std::int64_t share = least + (p.count - bank < more ? 1 : 0);
      for (std::int64_t i = 0; i < share && take(static_cast<std::int32_t>(bank)); ++i) ++taken;
    }
    while (taken < beam && take(kAnyBank)) ++taken;
    for (std::int64_t j = 0; j < width; ++j) write(first_row + j);
  }

 private:
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();

  // The taken candidates of a row and its </s>, best first.
  constexpr void write(std::int64_t row) const {
    Candidate* const all = pool + row * pool_size();
    for (std::int64_t rank = 0; rank < candidates; ++rank) {
      std::int64_t best = -1;
      for (std::int64_t i = 0; i < pool_size(); ++i) {
        if (all[i].token < 0 || (all[i].taken == 0 && all[i].token != end_token)) continue;
        if (best < 0 || all[i].log_prob > all[best].log_prob) best = i;
      }
      if (best < 0) return;
      log_probs[row * candidates + rank] = all[best].log_prob;
      ids[row * candidates + rank] = all[best].token;
      all[best].token = -1;
    }
  }

 public:
  static constexpr bool kIsaIndependent = true;
  const char* name() const { return "choose_candidates"; }
  Work work() const { return {}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ChooseCandidates<T>& p);

}  // namespace nunchi::kernels
