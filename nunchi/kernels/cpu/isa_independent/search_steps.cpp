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
  const std::int32_t* tokens = p.hypotheses.tokens + row * p.stride;
  const std::int64_t length = p.prefix_length[p.hypotheses.unit[row]] + p.now.tokens(p.generated);
  double banned = -std::numeric_limits<double>::infinity();
  const auto ban = [&](std::int32_t token) {
    if (logits[token] == kBanned) return;
    banned = log_add(banned, static_cast<double>(logits[token]));
    logits[token] = kBanned;
  };
  // What is banned for its repetition can be anything but the end.
  const auto ban_repetition = [&](std::int32_t token) {
    if (token != p.end_token) ban(token);
  };
  if (p.begin_token >= 0) ban(p.begin_token);
  for (std::int64_t i = 0; i < p.suppressed_count; ++i) ban(p.suppressed[i]);
  if (const std::int64_t n = p.no_repeat_ngram; n > 0 && length >= n) {
    const std::int32_t* recent = tokens + length - (n - 1);
    for (std::int64_t i = 0; i + n <= length; ++i) {
      if (std::equal(recent, recent + n - 1, tokens + i)) ban_repetition(tokens[i + n - 1]);
    }
  }
  if (p.max_repeats > 0) {
    for (std::int64_t period = 1; period <= BanTokens<T>::kLongestCycle; ++period) {
      if (is_cycle(tokens, length, period, p.max_repeats)) ban_repetition(tokens[length - period]);
    }
  }
  if (length < p.min_length) ban(p.end_token);
  if (p.banned != nullptr) p.banned[row] = banned;
}

// One hypothesis with one more token.
struct Candidate {
  std::int64_t row = 0;
  std::int64_t place = 0;  // among the row's candidates
  double score = 0;
};

// A unit's candidates, best first: a merge of its rows, which are sorted.
template <class T>
class Candidates {
 public:
  Candidates(const BeamStep<T>& p, std::int64_t unit, std::int64_t* places)
      : p_(p), first_row_(unit * p.width), places_(places) {
    std::fill_n(places_, p.width, 0);
  }

  // False when there is none left that can come at all.
  bool next(Candidate& best) {
    bool found = false;
    for (std::int64_t j = 0; j < p_.width; ++j) {
      const std::int64_t row = first_row_ + j;
      if (places_[j] == p_.candidates) continue;
      const double score =
          p_.from.score[row] + static_cast<double>(p_.log_probs[row * p_.candidates + places_[j]]);
      if (!(score > kImpossible) || (found && score <= best.score)) continue;
      best = {row, places_[j], score};
      found = true;
    }
    if (found) ++places_[best.row - first_row_];
    return found;
  }

 private:
  static constexpr double kImpossible = -std::numeric_limits<double>::infinity();
  const BeamStep<T>& p_;
  std::int64_t first_row_;
  std::int64_t* places_;  // [width]
};

template <class T>
class BeamUnit {
 public:
  BeamUnit(const BeamStep<T>& p, std::int64_t unit)
      : p_(p),
        number_(p.from.unit[unit * p.width]),
        length_(p.prefix_length[number_] + p.now.tokens(p.generated)) {}

  bool full() const { return p_.finished.count[number_] == p_.beam; }
  bool last() const { return length_ + 1 >= p_.max_length[number_]; }
  std::int32_t token(const Candidate& c) const { return p_.ids[c.row * p_.candidates + c.place]; }

  void finish(const Candidate& c, bool ended) {
    const FinishedRows& to = p_.finished;
    const std::int64_t at = number_ * p_.beam + to.count[number_]++;
    copy_history(c, to.tokens + at * p_.stride, to.token_scores + at * p_.stride);
    to.score[at] = c.score;
    to.length[at] = static_cast<std::int32_t>(ended ? length_ : length_ + 1);
    to.ended[at] = ended ? 1 : 0;
  }

  void go_on(const Candidate& c, std::int64_t row) {
    copy_history(c, p_.to.tokens + row * p_.stride, p_.to.token_scores + row * p_.stride);
    p_.to.score[row] = c.score;
    p_.to.unit[row] = number_;
    p_.parents[row] = static_cast<std::int32_t>(c.row);
    p_.next[row] = token(c);
    p_.row_source[row] = p_.unit_source[number_];
  }

  // A place in the beam for which there was no candidate: nothing comes of it.
  void leave_empty(const Candidate& any, std::int64_t row) {
    go_on(any, row);
    p_.to.score[row] = -std::numeric_limits<double>::infinity();
  }

 private:
  // The row's tokens so far, and the candidate's.
  void copy_history(const Candidate& c, std::int32_t* tokens, float* scores) const {
    std::copy_n(p_.from.tokens + c.row * p_.stride, length_, tokens);
    std::copy_n(p_.from.token_scores + c.row * p_.stride, length_, scores);
    tokens[length_] = token(c);
    scores[length_] = static_cast<float>(p_.log_probs[c.row * p_.candidates + c.place]);
  }

  const BeamStep<T>& p_;
  std::int32_t number_;
  std::int64_t length_;
};

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>&, const BanTokens<T>& p) {
  const std::int64_t rows = p.now.rows(p.rows);
  for (std::int64_t r = 0; r < rows; ++r) ban_in_row(p, r);
}
template void compute<AnyCpu>(CpuContext&, const BanTokens<float>&);
template void compute<AnyCpu>(CpuContext&, const BanTokens<double>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const BeamStep<T>& p) {
  const ScratchMemory places(ctx.arena(), static_cast<std::size_t>(p.width) * sizeof(std::int64_t));
  std::int64_t active = 0;
  const std::int64_t units = p.now.units(p.units);
  for (std::int64_t u = 0; u < units; ++u) {
    BeamUnit<T> unit(p, u);
    Candidates<T> candidates(p, u, places.as<std::int64_t>());
    // Rows are written where they will stand if the unit goes on, and written over if not.
    const std::int64_t first_row = active * p.beam;
    std::int64_t going_on = 0;
    Candidate c, last;
    for (std::int64_t rank = 0; going_on < p.beam && candidates.next(c); ++rank) {
      if (unit.token(c) == p.end_token) {
        if (rank < p.beam && !unit.full()) unit.finish(c, true);
      } else if (unit.last()) {
        if (unit.full()) break;
        unit.finish(c, false);
        ++going_on;
      } else {
        unit.go_on(last = c, first_row + going_on++);
      }
    }
    if (unit.full() || unit.last() || going_on == 0) continue;
    for (; going_on < p.beam; ++going_on) unit.leave_empty(last, first_row + going_on);
    ++active;
  }
  if (p.generated_next != nullptr) {
    *p.generated_next = static_cast<std::int32_t>(p.now.tokens(p.generated) + 1);
  }
  *p.active = static_cast<std::int32_t>(active);
  p.report(active, [](std::int64_t* slot, std::int64_t message) { *slot = message; });
}
template void compute<AnyCpu>(CpuContext&, const BeamStep<float>&);
template void compute<AnyCpu>(CpuContext&, const BeamStep<double>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const TopAllowed<T>& p) {
  execute(ctx, p.bans);
  execute(ctx, p.top);
}
template void compute<AnyCpu>(CpuContext&, const TopAllowed<float>&);
template void compute<AnyCpu>(CpuContext&, const TopAllowed<double>&);

}  // namespace nunchi::kernels
