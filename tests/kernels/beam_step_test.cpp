#include <limits>
#include <map>
#include <set>

#include "nunchi/kernels/search.h"
#include "tests/reference/search.h"
#include "tests/reference/versions.h"

namespace nunchi::testing {
namespace {

using kernels::BanTokens;
using kernels::BeamStep;
using kernels::UnitOptions;

constexpr std::int32_t kBegin = 1, kEnd = 2;

// Random hypotheses of few different tokens, so that there are many repetitions. Unit 3 has its own
// rules.
template <class T>
void check_bans(CpuContext& ctx, const reference::BanRules& rules, std::int64_t generated) {
  constexpr std::int64_t kRows = 12, kVocabulary = 7, kStride = 40;
  const std::vector<std::int32_t> prefix_length = {0, 5, 1, 9};  // of each unit
  std::vector<std::int32_t> tokens(kRows * kStride, -1), unit, lengths;
  std::vector<Tokens> hypotheses;
  std::vector<reference::BanRules> rules_of_unit(4, rules);
  rules_of_unit[3].min_length = 20;
  rules_of_unit[3].no_repeat_ngram = 2;
  rules_of_unit[3].max_repeats = 3;
  std::vector<UnitOptions> options;
  for (const reference::BanRules& unit_rules : rules_of_unit) {
    options.push_back({.min_length = static_cast<std::int32_t>(unit_rules.min_length),
                       .no_repeat_ngram = static_cast<std::int32_t>(unit_rules.no_repeat_ngram),
                       .max_repeats = static_cast<std::int32_t>(unit_rules.max_repeats)});
  }
  for (std::int64_t r = 0; r < kRows; ++r) {
    unit.push_back(static_cast<std::int32_t>(r % 4));
    const auto length = static_cast<std::size_t>(prefix_length[unit.back()] + generated);
    Tokens hypothesis;
    for (const double u : random_values<double>(static_cast<std::int64_t>(length), 70 + r)) {
      // Rows with even numbers repeat a cycle of r + 1 tokens.
      const auto position = static_cast<std::int32_t>(hypothesis.size());
      const auto cycle = static_cast<std::int32_t>(r + 1);
      hypothesis.push_back(r % 2 == 0 ? 3 + position % cycle % 4
                                      : static_cast<std::int32_t>((u + 1) * 3.5));
    }
    std::copy(hypothesis.begin(), hypothesis.end(), tokens.begin() + r * kStride);
    lengths.push_back(static_cast<std::int32_t>(hypothesis.size()));
    hypotheses.push_back(hypothesis);
  }
  auto logits = random_values<T>(kRows * kVocabulary, 1, 3);
  logits[2 * kVocabulary + 4] = static_cast<T>(-INFINITY);
  const auto initial_logits = logits;
  std::vector<double> banned(kRows, NAN);
  kernels::run(ctx, BanTokens<T>{.rows = kRows,
                                 .vocabulary = kVocabulary,
                                 .stride = kStride,
                                 .suppressed_token = rules.suppressed_token,
                                 .end_token = rules.end_token,
                                 .hypotheses = {.tokens = tokens.data(),
                                                .unit = unit.data(),
                                                .length = lengths.data()},
                                 .options = options.data(),
                                 .any_ngram = true,
                                 .logits = logits.data(),
                                 .banned = banned.data()});
  for (std::int64_t r = 0; r < kRows; ++r) {
    std::vector<double> banned_logits;
    for (std::int32_t token = 0; token < kVocabulary; ++token) {
      const T initial = initial_logits[r * kVocabulary + token],
              actual = logits[r * kVocabulary + token];
      if (reference::is_banned(hypotheses[r], token, rules_of_unit[unit[r]])) {
        ASSERT_EQ(actual, static_cast<T>(-INFINITY)) << "row " << r << ", token " << token;
        banned_logits.push_back(initial);
      } else {
        ASSERT_EQ(actual, initial) << "row " << r << ", token " << token;
      }
    }
    ASSERT_NEAR(banned[r], reference::log_sum(banned_logits), kTolerance<T>) << "row " << r;
  }
}

TEST(BanTokens, MatchTheReferenceRules) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const std::int64_t generated : {0, 1, 2, 8, 30}) {
      SCOPED_TRACE(std::to_string(generated) + " tokens");
      check_bans<T>(ctx, {}, generated);
      for (const std::int64_t n : {1, 2, 3, 4, 9}) {
        check_bans<T>(ctx, {.no_repeat_ngram = n}, generated);
      }
      for (const std::int64_t repeats : {1, 2, 3, 8}) {
        check_bans<T>(ctx, {.max_repeats = repeats}, generated);
      }
      for (const std::int64_t length : {1, 5, 6, 14, 100}) {
        check_bans<T>(ctx, {.min_length = length}, generated);
      }
      check_bans<T>(ctx,
                    {.suppressed_token = 0,
                     .end_token = 4,
                     .min_length = 9,
                     .no_repeat_ngram = 2,
                     .max_repeats = 2},
                    generated);
    }
  });
}

TEST(BanTokens, SuppressedTokensAreBanned) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    std::vector<std::int32_t> tokens{3, 4}, unit{0}, length{2};
    const std::vector<std::int32_t> suppressed{5, 0, 5};
    const UnitOptions options{};
    const std::vector<T> initial_logits{1, 2, 3, 4, 5, 6};
    std::vector<T> logits = initial_logits;
    double banned = 0;
    kernels::run(ctx, BanTokens<T>{.rows = 1,
                                   .vocabulary = 6,
                                   .stride = 2,
                                   .suppressed_token = 1,
                                   .suppressed_count = 3,
                                   .suppressed = suppressed.data(),
                                   .end_token = kEnd,
                                   .hypotheses = {.tokens = tokens.data(),
                                                  .unit = unit.data(),
                                                  .length = length.data()},
                                   .options = &options,
                                   .logits = logits.data(),
                                   .banned = &banned});
    constexpr T kNever = -std::numeric_limits<T>::infinity();
    EXPECT_EQ(logits, (std::vector<T>{kNever, kNever, 3, 4, 5, kNever}));
    EXPECT_NEAR(banned, reference::log_sum({1, 2, 6}), 1e-6);
  });
}

TEST(BanTokens, RepetitionRulesNeverBanTheEndToken) {
  CpuContext ctx;
  // Only the end token is left: all others are suppressed or would be repeated.
  std::vector<std::int32_t> tokens{0, 2, 3, 2}, unit{0}, length{4};
  const UnitOptions options{.no_repeat_ngram = 1, .max_repeats = 1};
  std::vector<float> logits(4, 0);
  kernels::run(ctx, BanTokens<float>{.rows = 1,
                                     .vocabulary = 4,
                                     .stride = 4,
                                     .suppressed_token = kBegin,
                                     .end_token = kEnd,
                                     .hypotheses = {.tokens = tokens.data(),
                                                    .unit = unit.data(),
                                                    .length = length.data()},
                                     .options = &options,
                                     .any_ngram = true,
                                     .logits = logits.data()});
  EXPECT_EQ(logits, (std::vector<float>{-INFINITY, -INFINITY, 0, -INFINITY}));
}

// A whole beam search with random scores, compared with the reference after every step.
struct BeamSetup {
  std::int64_t beam = 1, candidates = 1;
  std::int32_t vocabulary = 10;
  std::vector<std::int32_t> prefix_length, max_length;  // of each unit
  double end_rate = 0.2;         // probability that </s> is among a row's candidates
  double impossible_rate = 0.0;  // probability that a candidate has the score -inf
  int levels = 0;                // number of different scores, so that sums are equal; 0: any
  std::uint64_t seed = 1;
};

template <class T>
class BeamSearch {
 public:
  explicit BeamSearch(const BeamSetup& setup)
      : setup_(setup),
        units_(static_cast<std::int64_t>(setup.prefix_length.size())),
        stride_(*std::max_element(setup.max_length.begin(), setup.max_length.end()) + 1),
        from_(units_ * setup.beam, stride_),
        to_(units_ * setup.beam, stride_),
        finished_(units_ * setup.beam, stride_),
        finished_length_(index(units_ * setup.beam), -1),
        finished_ended_(index(units_ * setup.beam), -1),
        finished_count_(index(units_), 0),
        finished_done_(index(units_), 0) {
    for (std::int32_t u = 0; u < units_; ++u) {
      options_.push_back(
          {.prefix_length = setup.prefix_length[u], .max_length = setup.max_length[u]});
      reference::BeamRow row;
      for (std::int32_t i = 0; i < setup.prefix_length[u]; ++i) {
        row.tokens.push_back(3 + i);
        row.token_scores.push_back(0);
        from_.tokens[u * stride_ + i] = 3 + i;
        from_.token_scores[u * stride_ + i] = 0;
      }
      from_.score[u] = 0;
      from_.unit[u] = u;
      from_.length[u] = setup.prefix_length[u];
      active_.push_back({.number = u, .rows = {row}});
    }
  }

  // Runs all steps and compares each with the reference. Returns the number of steps.
  int run(CpuContext& ctx) {
    int steps = 0;
    for (std::int64_t width = 1; !active_.empty(); width = setup_.beam) {
      step(ctx, width, steps++);
      if (::testing::Test::HasFatalFailure()) return steps;
    }
    check_finished();
    return steps;
  }

 private:
  struct Rows {
    Rows(std::int64_t rows, std::int64_t stride)
        : tokens(index(rows * stride), -1),
          token_scores(index(rows * stride), NAN),
          score(index(rows), NAN),
          unit(index(rows), -1),
          length(index(rows), -1) {}
    kernels::SearchRows rows() {
      return {tokens.data(), token_scores.data(), score.data(), unit.data(), length.data()};
    }
    std::vector<std::int32_t> tokens;
    std::vector<float> token_scores;
    std::vector<double> score;
    std::vector<std::int32_t> unit, length;
  };

  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

  // Appends random candidates: descending scores and different tokens, sometimes with </s>.
  void make_candidates(std::int64_t rows, int step, std::vector<T>& log_probs,
                       std::vector<std::int32_t>& ids) const {
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto draws =
          random_values<double>(2 * setup_.candidates + 2,
                                setup_.seed * 10007 + static_cast<std::uint64_t>(step * 501 + r));
      std::vector<double> scores;
      for (std::int64_t c = 0; c < setup_.candidates; ++c) {
        double score = -3 * (draws[c] + 1);
        if (setup_.levels > 0) score = std::floor(score / 6 * setup_.levels);
        const bool impossible = (draws[setup_.candidates + c] + 1) / 2 < setup_.impossible_rate;
        scores.push_back(impossible ? -INFINITY : score);
      }
      std::sort(scores.rbegin(), scores.rend());
      for (const double score : scores) log_probs.push_back(static_cast<T>(score));
      const auto first = static_cast<std::int32_t>((draws.back() + 1) / 2 * setup_.vocabulary);
      const bool ends = (draws[draws.size() - 2] + 1) / 2 < setup_.end_rate;
      const auto end_at = (first + r) % setup_.candidates;
      std::int32_t token = first;
      for (std::int64_t c = 0; c < setup_.candidates; ++c) {
        do token = (token + 1) % setup_.vocabulary;
        while (token == kEnd);
        ids.push_back(ends && c == end_at ? kEnd : token);
      }
    }
  }

  void step(CpuContext& ctx, std::int64_t width, int step) {
    const auto active = static_cast<std::int64_t>(active_.size());
    const std::int64_t max_rows = active * setup_.beam;
    std::vector<T> log_probs;
    std::vector<std::int32_t> ids;
    make_candidates(active * width, step, log_probs, ids);
    std::vector<std::int32_t> parents(index(max_rows), -1), next(index(max_rows), -1);
    std::int32_t active_after = -1;
    kernels::run(ctx, BeamStep<T>{.units = active,
                                  .width = width,
                                  .beam = setup_.beam,
                                  .candidates = setup_.candidates,
                                  .stride = stride_,
                                  .end_token = kEnd,
                                  .log_probs = log_probs.data(),
                                  .ids = ids.data(),
                                  .options = options_.data(),
                                  .from = from_.rows(),
                                  .to = to_.rows(),
                                  .finished = {.tokens = finished_.tokens.data(),
                                               .token_scores = finished_.token_scores.data(),
                                               .score = finished_.score.data(),
                                               .length = finished_length_.data(),
                                               .ended_by_eos = finished_ended_.data(),
                                               .count = finished_count_.data(),
                                               .unit_done = finished_done_.data()},
                                  .parents = parents.data(),
                                  .next = next.data(),
                                  .active = &active_after});

    std::vector<reference::BeamUnit> continuing;
    for (std::int64_t u = 0; u < active; ++u) {
      reference::BeamUnit& unit = active_[index(u)];
      reference::BeamCandidates candidates{.first_row = u * width};
      for (std::int64_t j = 0; j < width; ++j) {
        const std::int64_t offset = (u * width + j) * setup_.candidates;
        candidates.log_probs.push_back(row_of(log_probs, u * width + j, setup_.candidates));
        candidates.ids.push_back(subrange(ids, offset, setup_.candidates));
      }
      const bool continues = reference::beam_step(
          unit, candidates,
          {.beam = setup_.beam, .max_length = setup_.max_length[unit.number], .end_token = kEnd});
      ASSERT_EQ(finished_done_[unit.number], continues ? 0 : 1);
      if (continues) {
        continuing.push_back(unit);
      } else {
        done_.push_back(unit);
      }
    }
    ASSERT_EQ(active_after, static_cast<std::int32_t>(continuing.size())) << "step " << step;
    for (std::size_t u = 0; u < continuing.size(); ++u) {
      for (std::int64_t j = 0; j < setup_.beam; ++j) {
        const std::int64_t row = static_cast<std::int64_t>(u) * setup_.beam + j;
        SCOPED_TRACE("step " + std::to_string(step) + ", row " + std::to_string(row));
        ASSERT_EQ(to_.unit[row], continuing[u].number);
        ASSERT_EQ(to_.length[row], static_cast<std::int32_t>(continuing[u].rows[0].tokens.size()));
        if (index(j) >= continuing[u].rows.size()) {  // a placeholder
          ASSERT_EQ(to_.score[row], -INFINITY);
          ASSERT_TRUE(parents[row] >= 0 && parents[row] < active * width);
          ASSERT_TRUE(next[row] >= 0 && next[row] < setup_.vocabulary);
          continue;
        }
        const reference::BeamRow& expected = continuing[u].rows[index(j)];
        const auto length = static_cast<std::int64_t>(expected.tokens.size());
        ASSERT_EQ(subrange(to_.tokens, row * stride_, length), expected.tokens);
        ASSERT_EQ(subrange(to_.token_scores, row * stride_, length), expected.token_scores);
        ASSERT_EQ(to_.score[row], expected.score);
        ASSERT_EQ(parents[row], expected.parent);
        ASSERT_EQ(next[row], expected.tokens.back());
      }
      // The kernel always keeps `beam` rows; the reference gets the same placeholders.
      reference::BeamRow placeholder = continuing[u].rows[0];
      placeholder.score = -INFINITY;
      continuing[u].rows.resize(index(setup_.beam), placeholder);
    }
    active_ = continuing;
    std::swap(from_, to_);
  }

  void check_finished() const {
    for (const reference::BeamUnit& unit : done_) {
      SCOPED_TRACE("unit " + std::to_string(unit.number));
      ASSERT_EQ(finished_count_[unit.number], static_cast<std::int32_t>(unit.finished.size()));
      for (std::size_t f = 0; f < unit.finished.size(); ++f) {
        const std::int64_t slot = unit.number * setup_.beam + static_cast<std::int64_t>(f);
        const reference::BeamRow& expected = unit.finished[f];
        const auto length = static_cast<std::int64_t>(expected.tokens.size());
        ASSERT_EQ(finished_length_[slot], length);
        ASSERT_EQ(finished_ended_[slot], expected.ended ? 1 : 0);
        ASSERT_EQ(finished_.score[slot], expected.score);
        ASSERT_EQ(subrange(finished_.tokens, slot * stride_, length), expected.tokens);
        ASSERT_EQ(subrange(finished_.token_scores, slot * stride_,
                           static_cast<std::int64_t>(expected.token_scores.size())),
                  expected.token_scores);
      }
    }
  }

  BeamSetup setup_;
  std::int64_t units_, stride_;
  Rows from_, to_, finished_;
  std::vector<std::int32_t> finished_length_, finished_ended_, finished_count_, finished_done_;
  std::vector<UnitOptions> options_;
  std::vector<reference::BeamUnit> active_, done_;
};

TEST(BeamStep, WholeSearchMatchesTheReference) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    int steps = 0;
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      for (const std::int64_t beam : {1, 2, 3, 5}) {
        for (const int levels : {0, 4}) {
          for (const double impossible : {0.0, 0.5}) {
            SCOPED_TRACE("beam " + std::to_string(beam) + ", seed " + std::to_string(seed) +
                         ", levels " + std::to_string(levels));
            BeamSearch<T> search({.beam = beam,
                                  .candidates = beam == 1 ? 1 : beam + 1,
                                  .prefix_length = {0, 3, 0, 1, 7},
                                  .max_length = {6, 9, 1, 12, 8},
                                  .end_rate = 0.1 * static_cast<double>(seed % 5),
                                  .impossible_rate = impossible,
                                  .levels = levels,
                                  .seed = seed});
            steps += search.run(ctx);
            if (::testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
    EXPECT_GT(steps, 500);
  });
}

// The vocabulary is smaller than the beam: at first there are too few candidates.
TEST(BeamStep, FillsRowsWithoutCandidatesWithPlaceholders) {
  CpuContext ctx;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    BeamSearch<float> search({.beam = 6,
                              .candidates = 3,
                              .vocabulary = 4,
                              .prefix_length = {0, 2},
                              .max_length = {5, 7},
                              .end_rate = 0.5,
                              .impossible_rate = 0.3,
                              .seed = seed});
    search.run(ctx);
  }
}

// One step of one unit.
struct OneStep {
  std::vector<std::vector<std::pair<float, std::int32_t>>> rows;  // scores and tokens
  std::int64_t beam = 2;
  std::int32_t max_length = 10;
  std::int32_t already_finished = 0;
};

struct StepResult {
  std::vector<std::int32_t> next;  // newest tokens of the rows that continue
  std::vector<double> finished;    // scores of the hypotheses that finished in this step
  std::int32_t active = -1;
};

StepResult take(const OneStep& one_step) {
  constexpr std::int64_t kStride = 12;
  CpuContext ctx;
  const auto width = static_cast<std::int64_t>(one_step.rows.size()), beam = one_step.beam;
  std::vector<float> log_probs;
  std::vector<std::int32_t> ids;
  for (const auto& row : one_step.rows) {
    for (const auto& [score, id] : row) {
      log_probs.push_back(score);
      ids.push_back(id);
    }
  }
  const auto rows = static_cast<std::size_t>(std::max(width, beam));
  const std::size_t elements = rows * kStride;
  std::vector<std::int32_t> tokens(elements, 5), to_tokens(elements), done_tokens(elements);
  std::vector<float> scores(elements, 0), to_scores(elements), done_scores(elements);
  std::vector<double> score(rows, 0), to_score(rows), done_score(rows);
  std::vector<std::int32_t> unit(rows, 0), row_length(rows, 3), to_unit(rows), to_length(rows),
      length(rows), ended(rows), parents(rows), next(rows, -1);
  std::int32_t count = one_step.already_finished, active = -1, done = 0;
  const UnitOptions options{.max_length = one_step.max_length};
  kernels::run(
      ctx, BeamStep<float>{
               .units = 1,
               .width = width,
               .beam = beam,
               .candidates = static_cast<std::int64_t>(one_step.rows[0].size()),
               .stride = kStride,
               .end_token = kEnd,
               .log_probs = log_probs.data(),
               .ids = ids.data(),
               .options = &options,
               .from = {tokens.data(), scores.data(), score.data(), unit.data(), row_length.data()},
               .to = {to_tokens.data(), to_scores.data(), to_score.data(), to_unit.data(),
                      to_length.data()},
               .finished = {done_tokens.data(), done_scores.data(), done_score.data(),
                            length.data(), ended.data(), &count, &done},
               .parents = parents.data(),
               .next = next.data(),
               .active = &active});
  EXPECT_EQ(done, active == 0 ? 1 : 0);
  StepResult result{.active = active};
  for (std::int32_t f = one_step.already_finished; f < count; ++f)
    result.finished.push_back(done_score[f]);
  if (active > 0) result.next = next;
  return result;
}

// CPU contexts make no signals, because kernels have finished when run() returns. But a step writes
// to a signal if it is given one.
TEST(BeamStep, ReportsThatNoUnitIsActive) {
  CpuContext ctx;
  EXPECT_EQ(ctx.make_host_signal(), nullptr);
  std::int64_t signal[HostSignal::kSlots] = {};
  const std::int32_t steps_before = 12;
  std::int32_t active = -1, steps = -1;
  kernels::run(ctx, BeamStep<float>{.units = 0,
                                    .counts = {.steps = &steps_before},
                                    .active = &active,
                                    .steps = &steps,
                                    .signal = signal});
  EXPECT_EQ(active, 0);
  EXPECT_EQ(steps, 13);
  EXPECT_EQ(signal[13 % HostSignal::kSlots], HostSignal::message_of(13, 0));
}

// The rows of the active units must stay unchanged.
TEST(BeamStep, NewUnitsGetRowsAfterTheActiveOnes) {
  constexpr std::int64_t kStride = 4, kRows = 8;
  CpuContext ctx;
  const std::vector<float> log_probs{-1, -2, -3, -4, -5, -6, -7, -8, -9};
  const std::vector<std::int32_t> ids{7, 8, 9, kEnd, 5, 6, 3, 4, 5};
  // Three units join the search. Unit 2 is done after this step: its maximum length is one token.
  const std::vector<UnitOptions> options{
      {}, {}, {.max_length = 1}, {.max_length = 4}, {.max_length = 4}};
  std::vector<std::int32_t> tokens(3 * kStride), unit{3, 2, 4}, length{0, 0, 0};
  std::vector<float> scores(3 * kStride);
  std::vector<double> score(3, 0);
  std::vector<std::int32_t> to_tokens(kRows * kStride, -1), to_unit(kRows, -1),
      to_length(kRows, -1), parents(kRows, -1), next(kRows, -1);
  std::vector<float> to_scores(kRows * kStride, NAN);
  std::vector<double> to_score(kRows, NAN);
  std::vector<std::int32_t> done_tokens(10 * kStride), done_length(10), ended(10), count(5),
      done(5);
  std::vector<float> done_scores(10 * kStride);
  std::vector<double> done_score(10);
  const std::int32_t units_before = 2, steps_before = 6;
  std::int32_t active = -1, steps = -1;
  kernels::run(ctx,
               BeamStep<float>{
                   .units = 3,
                   .width = 1,
                   .beam = 2,
                   .candidates = 3,
                   .stride = kStride,
                   .counts = {.steps = &steps_before},
                   .end_token = kEnd,
                   .log_probs = log_probs.data(),
                   .ids = ids.data(),
                   .options = options.data(),
                   .from = {tokens.data(), scores.data(), score.data(), unit.data(), length.data()},
                   .to = {to_tokens.data(), to_scores.data(), to_score.data(), to_unit.data(),
                          to_length.data()},
                   .finished = {done_tokens.data(), done_scores.data(), done_score.data(),
                                done_length.data(), ended.data(), count.data(), done.data()},
                   .first_unit = &units_before,
                   .first_parent = 40,
                   .parents = parents.data(),
                   .next = next.data(),
                   .active = &active,
                   .steps = &steps});
  EXPECT_EQ(active, 4);
  EXPECT_EQ(steps, 7);
  EXPECT_EQ(to_unit, (std::vector<std::int32_t>{-1, -1, -1, -1, 3, 3, 4, 4}));
  EXPECT_EQ(to_length, (std::vector<std::int32_t>{-1, -1, -1, -1, 1, 1, 1, 1}));
  EXPECT_EQ(parents, (std::vector<std::int32_t>{-1, -1, -1, -1, 40, 40, 42, 42}));
  EXPECT_EQ(next, (std::vector<std::int32_t>{-1, -1, -1, -1, 7, 8, 3, 4}));
  EXPECT_EQ(done, (std::vector<std::int32_t>{0, 0, 1, 0, 0}));
  EXPECT_EQ(count, (std::vector<std::int32_t>{0, 0, 2, 0, 0}));
}

TEST(BeamStep, EndTokenFinishesOnlyAmongTheFirstBeamCandidates) {
  // </s> is the second best of a beam of two: it finishes, and two others continue.
  const StepResult second = take({.rows = {{{-1, 7}, {-2, kEnd}, {-9, 8}}}});
  EXPECT_EQ(second.finished, (std::vector<double>{-2}));
  EXPECT_EQ(second.next, (std::vector<std::int32_t>{7, 8}));
  // </s> is the third best: it does not finish.
  const StepResult third = take({.rows = {{{-1, 7}, {-2, 8}, {-3, kEnd}}}});
  EXPECT_TRUE(third.finished.empty());
  EXPECT_EQ(third.next, (std::vector<std::int32_t>{7, 8}));
  // </s> is the best of its row but the third best of the unit.
  const StepResult other =
      take({.rows = {{{-1, 7}, {-2, 8}, {-9, 9}}, {{-3, kEnd}, {-4, 3}, {-5, 4}}}});
  EXPECT_TRUE(other.finished.empty());
}

TEST(BeamStep, UnitIsDoneWhenItsBeamHasFinished) {
  const OneStep both{.rows = {{{-1, kEnd}, {-4, 8}, {-9, 9}}, {{-2, kEnd}, {-5, 8}, {-9, 9}}}};
  const StepResult result = take(both);
  EXPECT_EQ(result.finished, (std::vector<double>{-1, -2}));
  EXPECT_EQ(result.active, 0);
  // If one hypothesis had finished before, only one more can.
  OneStep full = both;
  full.already_finished = 1;
  EXPECT_EQ(take(full).finished, (std::vector<double>{-1}));
  EXPECT_EQ(take(full).active, 0);
}

TEST(BeamStep, BestHypothesesAreCutAtTheMaximumLength) {
  const StepResult result =
      take({.rows = {{{-1, 7}, {-2, kEnd}, {-3, 8}}}, .beam = 2, .max_length = 4});
  EXPECT_EQ(result.finished, (std::vector<double>{-1, -2}));
  EXPECT_EQ(result.active, 0);
}

TEST(BeamStep, UnitWithoutCandidatesIsDoneWithoutResults) {
  for (const float score : {-INFINITY, NAN}) {
    const StepResult result = take({.rows = {{{score, 7}, {score, 8}, {score, kEnd}}}});
    EXPECT_TRUE(result.finished.empty());
    EXPECT_EQ(result.active, 0);
  }
}

}  // namespace
}  // namespace nunchi::testing
