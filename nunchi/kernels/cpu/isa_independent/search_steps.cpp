#include <algorithm>
#include <limits>

#include "nunchi/kernels/cpu/log_add.h"
#include "nunchi/kernels/search.h"

namespace nunchi::kernels {
namespace {

template <class T>
void ban_in_row(const BanTokens<T>& p, std::int64_t row) {
  constexpr T kBanned = -std::numeric_limits<T>::infinity();
  T* logits = p.logits + row * p.vocabulary;
  const UnitOptions& unit = p.options[p.hypotheses.unit[row]];
  const std::int32_t* tokens = p.hypotheses.tokens + row * p.stride;
  const std::int64_t length = p.hypotheses.length[row];
  double banned = -std::numeric_limits<double>::infinity();
  const auto ban = [&](std::int32_t token) {
    if (logits[token] == kBanned) return;
    banned = log_add(banned, static_cast<double>(logits[token]));
    logits[token] = kBanned;
  };
  // Rules on repetition never ban the end token.
  const auto ban_repetition = [&](std::int32_t token) {
    if (token != p.end_token) ban(token);
  };
  if (p.suppressed_token >= 0) ban(p.suppressed_token);
  for (std::int64_t i = 0; i < p.suppressed_count; ++i) ban(p.suppressed[i]);
  if (const std::int64_t n = unit.no_repeat_ngram; n > 0 && length >= n) {
    const std::int32_t* recent = tokens + length - (n - 1);
    for (std::int64_t i = 0; i + n <= length; ++i) {
      if (std::equal(recent, recent + n - 1, tokens + i)) ban_repetition(tokens[i + n - 1]);
    }
  }
  if (unit.max_repeats > 0) {
    for (std::int64_t period = 1; period <= UnitOptions::kLongestCycle; ++period) {
      if (is_cycle(tokens, length, period, unit.max_repeats)) {
        ban_repetition(tokens[length - period]);
      }
    }
  }
  if (length < unit.min_length) ban(p.end_token);
  if (p.banned != nullptr) p.banned[row] = banned;
}

// A hypothesis extended by one token.
struct Candidate {
  std::int64_t row = 0;
  std::int64_t rank = 0;  // index among the row's candidates
  double score = 0;
};

// Iterates over a unit's candidates, best first: merges its rows, whose candidates are sorted.
template <class T>
class Candidates {
 public:
  Candidates(const BeamStep<T>& p, std::int64_t unit, std::int64_t* ranks)
      : p_(p), first_row_(unit * p.width), ranks_(ranks) {
    std::fill_n(ranks_, p.width, 0);
  }

  // Returns false when no candidate with a score above -inf is left.
  bool next(Candidate& best) {
    bool found = false;
    for (std::int64_t j = 0; j < p_.width; ++j) {
      const std::int64_t row = first_row_ + j;
      if (ranks_[j] == p_.candidates) continue;
      const double score =
          p_.from.score[row] + static_cast<double>(p_.log_probs[row * p_.candidates + ranks_[j]]);
      if (!(score > kImpossibleScore) || (found && score <= best.score)) continue;
      best = {row, ranks_[j], score};
      found = true;
    }
    if (found) ++ranks_[best.row - first_row_];
    return found;
  }

 private:
  static constexpr double kImpossibleScore = -std::numeric_limits<double>::infinity();
  const BeamStep<T>& p_;
  std::int64_t first_row_;
  std::int64_t* ranks_;  // [width] rank of each row's next candidate
};

// Writes the results of one unit's step.
template <class T>
class BeamUnit {
 public:
  BeamUnit(const BeamStep<T>& p, std::int64_t unit)
      : p_(p), index_(p.from.unit[unit * p.width]), length_(p.from.length[unit * p.width]) {}

  // Whether `beam` hypotheses have finished.
  bool full() const { return p_.finished.count[index_] == p_.beam; }
  // Whether hypotheses reach the maximum length in this step.
  bool at_max_length() const { return length_ + 1 >= p_.options[index_].max_length; }
  std::int32_t token(const Candidate& c) const { return p_.ids[c.row * p_.candidates + c.rank]; }

  void finish(const Candidate& c, bool ended) {
    const FinishedRows& to = p_.finished;
    const std::int64_t slot = index_ * p_.beam + to.count[index_]++;
    copy_history(c, to.tokens + slot * p_.stride, to.token_scores + slot * p_.stride);
    to.score[slot] = c.score;
    to.length[slot] = static_cast<std::int32_t>(ended ? length_ : length_ + 1);
    to.ended_by_eos[slot] = ended ? 1 : 0;
  }

  void mark_done() { p_.finished.unit_done[index_] = 1; }

  void continue_with(const Candidate& c, std::int64_t row) {
    copy_history(c, p_.to.tokens + row * p_.stride, p_.to.token_scores + row * p_.stride);
    p_.to.score[row] = c.score;
    p_.to.unit[row] = index_;
    p_.to.length[row] = static_cast<std::int32_t>(length_ + 1);
    p_.parents[row] = static_cast<std::int32_t>(p_.first_parent + c.row);
    p_.next[row] = token(c);
  }

  // Fills a row of the beam for which there is no candidate. Its score of -inf keeps it from
  // producing candidates.
  void write_placeholder(const Candidate& any, std::int64_t row) {
    continue_with(any, row);
    p_.to.score[row] = -std::numeric_limits<double>::infinity();
  }

 private:
  // Copies the row's tokens so far and appends the candidate's token.
  void copy_history(const Candidate& c, std::int32_t* tokens, float* scores) const {
    std::copy_n(p_.from.tokens + c.row * p_.stride, length_, tokens);
    std::copy_n(p_.from.token_scores + c.row * p_.stride, length_, scores);
    tokens[length_] = token(c);
    scores[length_] = static_cast<float>(p_.log_probs[c.row * p_.candidates + c.rank]);
  }

  const BeamStep<T>& p_;
  std::int32_t index_;
  std::int64_t length_;
};

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>&, const BanTokens<T>& p) {
  const std::int64_t rows = p.counts.rows(p.rows);
  for (std::int64_t r = 0; r < rows; ++r) ban_in_row(p, r);
}
template void compute<AnyCpu>(CpuContext&, const BanTokens<float>&);
template void compute<AnyCpu>(CpuContext&, const BanTokens<double>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const BeamStep<T>& p) {
  const ScratchMemory ranks(ctx.arena(), static_cast<std::size_t>(p.width) * sizeof(std::int64_t));
  std::int64_t active = p.units_before();
  const std::int64_t units = p.counts.units(p.units);
  for (std::int64_t u = 0; u < units; ++u) {
    BeamUnit<T> unit(p, u);
    Candidates<T> candidates(p, u, ranks.as<std::int64_t>());
    // If the unit is done, the next unit overwrites these rows.
    const std::int64_t first_row = active * p.beam;
    std::int64_t continuing = 0;
    Candidate c, last;
    for (std::int64_t rank = 0; continuing < p.beam && candidates.next(c); ++rank) {
      if (unit.token(c) == p.end_token) {
        if (rank < p.beam && !unit.full()) unit.finish(c, true);
      } else if (unit.at_max_length()) {
        if (unit.full()) break;
        unit.finish(c, false);
        ++continuing;
      } else {
        unit.continue_with(last = c, first_row + continuing++);
      }
    }
    if (unit.full() || unit.at_max_length() || continuing == 0) {
      unit.mark_done();
      continue;
    }
    for (; continuing < p.beam; ++continuing) unit.write_placeholder(last, first_row + continuing);
    ++active;
  }
  p.report(active, [](std::int64_t* slot, std::int64_t message) { *slot = message; });
  *p.active = static_cast<std::int32_t>(active);
  if (p.steps != nullptr) *p.steps = static_cast<std::int32_t>(p.steps_after());
}
template void compute<AnyCpu>(CpuContext&, const BeamStep<float>&);
template void compute<AnyCpu>(CpuContext&, const BeamStep<double>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const TopAllowedTokens<T>& p) {
  run_unprofiled(ctx, p.bans);
  run_unprofiled(ctx, p.top);
}
template void compute<AnyCpu>(CpuContext&, const TopAllowedTokens<float>&);
template void compute<AnyCpu>(CpuContext&, const TopAllowedTokens<double>&);

}  // namespace nunchi::kernels
