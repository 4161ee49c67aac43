#include "nunchi/kernels/search.h"

#include <map>
#include <set>

#include "tests/reference/search.h"
#include "tests/reference/versions.h"

namespace nunchi::testing {
namespace {

using kernels::BanTokens;
using kernels::BeamStep;
using kernels::SampleTokens;
using kernels::TopTokens;

constexpr std::int32_t kBegin = 1, kEnd = 2;

template <class T>
std::vector<double> row_of(const std::vector<T>& matrix, std::int64_t row, std::int64_t width) {
  const auto values = part(matrix, row * width, width);
  return {values.begin(), values.end()};
}

// Rows of random logits; with `levels`, only so many different ones, so that many are equal.
template <class T>
std::vector<T> logits_of(std::int64_t rows, std::int64_t vocabulary, int levels = 0) {
  auto logits = random_values<T>(rows * vocabulary, 5, 8);
  if (levels > 0) {
    for (T& x : logits) x = static_cast<T>(std::floor(static_cast<double>(x) / 8 * levels));
  }
  return logits;
}

template <class T>
struct Top {
  std::vector<T> log_probs;
  std::vector<std::int32_t> ids;
};

template <class T>
Top<T> top_of(CpuContext& ctx, const std::vector<T>& logits, std::int64_t vocabulary,
              std::int64_t count) {
  const auto rows = static_cast<std::int64_t>(logits.size()) / vocabulary;
  Top<T> top{unwritten<T>(rows * count),
             std::vector<std::int32_t>(static_cast<std::size_t>(rows * count), -1)};
  kernels::run(ctx, TopTokens<T>{.rows = rows,
                                 .vocabulary = vocabulary,
                                 .count = count,
                                 .logits = logits.data(),
                                 .log_probs = top.log_probs.data(),
                                 .ids = top.ids.data()});
  return top;
}

template <class T>
void expect_top(CpuContext& ctx, const std::vector<T>& logits, std::int64_t vocabulary,
                std::int64_t count) {
  const Top<T> top = top_of(ctx, logits, vocabulary, count);
  const auto rows = static_cast<std::int64_t>(logits.size()) / vocabulary;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto x = row_of(logits, r, vocabulary);
    auto ids = reference::sorted_ids(x);
    ids.resize(static_cast<std::size_t>(count));
    ASSERT_EQ(part(top.ids, r * count, count), ids) << "row " << r << ", first " << count;
    const double sum = reference::log_sum(x);
    for (std::int64_t i = 0; i < count; ++i) {
      const double expected = x[ids[i]] - sum, actual = top.log_probs[r * count + i];
      if (std::isinf(expected)) {
        ASSERT_EQ(actual, expected);
      } else {
        ASSERT_NEAR(actual, expected, kTolerance<T> * (1 + std::fabs(expected)));
      }
    }
  }
}

const std::vector<std::int64_t> kVocabularies = {1, 2, 63, 64, 65, 1000};

TEST(TopTokens, AreTheFirstOfAllSorted) {
  for_every_version([]<class T>(CpuContext& ctx) {
    for (const std::int64_t vocabulary : kVocabularies) {
      for (const std::int64_t count : {1, 2, 5, 64, 65, 1000}) {
        if (count > vocabulary) continue;
        SCOPED_TRACE("vocabulary " + std::to_string(vocabulary));
        expect_top(ctx, logits_of<T>(5, vocabulary), vocabulary, count);
      }
    }
  });
}

TEST(TopTokens, OfEqualsTheLowerIdWins) {
  for_every_version([]<class T>(CpuContext& ctx) {
    for (const std::int64_t vocabulary : kVocabularies) {
      for (const int levels : {1, 2, 30}) {
        for (const std::int64_t count : {std::int64_t{1}, std::int64_t{7}, vocabulary}) {
          if (count > vocabulary) continue;
          expect_top(ctx, logits_of<T>(4, vocabulary, levels), vocabulary, count);
        }
      }
    }
  });
}

TEST(TopTokens, WhatCannotComeIsLast) {
  for_every_version([]<class T>(CpuContext& ctx) {
    for (const std::int64_t vocabulary : {2, 64, 65, 1000}) {
      auto logits = logits_of<T>(4, vocabulary);
      for (std::int64_t i = 0; i < 4 * vocabulary; ++i) {
        if (i % vocabulary % 3 != 1) logits[i] = static_cast<T>(-INFINITY);
      }
      expect_top(ctx, logits, vocabulary, 1);
      expect_top(ctx, logits, vocabulary, vocabulary);
    }
  });
}

// What BanTokens took out of a row still counts in the sum, so that log-probabilities stay the
// model's.
TEST(TopTokens, LogProbabilitiesCountWhatWasBanned) {
  for_every_version([]<class T>(CpuContext& ctx) {
    constexpr std::int64_t kVocabulary = 65;
    auto logits = logits_of<T>(3, kVocabulary);
    const std::vector<std::int32_t> none(3, 0);
    std::vector<std::int32_t> unit{0, 1, 2};
    std::vector<double> banned(3, NAN);
    // Row 2's likeliest token is what may not come.
    logits[2 * kVocabulary + kBegin] = 30;
    const auto all = logits;
    kernels::run(ctx, BanTokens<T>{.rows = 3,
                                   .vocabulary = kVocabulary,
                                   .stride = 1,
                                   .min_length = 1,
                                   .hypotheses = {.unit = unit.data()},
                                   .prefix_length = none.data(),
                                   .logits = logits.data(),
                                   .banned = banned.data()});
    Top<T> top{unwritten<T>(3), {0, 0, 0}};
    kernels::run(ctx, TopTokens<T>{.rows = 3,
                                   .vocabulary = kVocabulary,
                                   .logits = logits.data(),
                                   .banned = banned.data(),
                                   .log_probs = top.log_probs.data(),
                                   .ids = top.ids.data()});
    for (std::int64_t r = 0; r < 3; ++r) {
      const auto x = row_of(all, r, kVocabulary);
      EXPECT_NE(top.ids[r], kBegin);
      EXPECT_NE(top.ids[r], kEnd);
      EXPECT_NEAR(top.log_probs[r], x[top.ids[r]] - reference::log_sum(x), 20 * kTolerance<T>);
      EXPECT_NEAR(banned[r], reference::log_sum({x[kBegin], x[kEnd]}), 20 * kTolerance<T>);
    }
  });
}

TEST(TopTokens, ManySmallProbabilitiesAddUp) {
  for_every_version([]<class T>(CpuContext& ctx) {
    // 50,000 equal logits: each has a probability of 1 / 50,000.
    const std::vector<T> logits(50000, T(-3));
    const Top<T> top = top_of(ctx, logits, 50000, 2);
    EXPECT_NEAR(top.log_probs[1], -std::log(50000.0), kTolerance<T> * 10);
    EXPECT_EQ(top.ids, (std::vector<std::int32_t>{0, 1}));
  });
}

TEST(TopTokens, ANaNStaysVisible) {
  for_every_version([]<class T>(CpuContext& ctx) {
    for (const std::int64_t at : {0, 5, 63, 64, 99}) {
      for (const T bad : {static_cast<T>(NAN), static_cast<T>(INFINITY)}) {
        auto logits = logits_of<T>(1, 100);
        logits[at] = bad;
        for (const T log_prob : top_of(ctx, logits, 100, 5).log_probs) {
          EXPECT_FALSE(std::isfinite(log_prob)) << bad << " at " << at;
        }
      }
    }
    const std::vector<T> impossible(100, static_cast<T>(-INFINITY));
    EXPECT_FALSE(std::isfinite(top_of(ctx, impossible, 100, 1).log_probs[0]));
  });
}

TEST(TopTokens, ThreadsAndNeighboursChangeNothing) {
  expect_threads_change_nothing([]<class T>(CpuContext& ctx) {
    return top_of(ctx, logits_of<T>(37, 1000), 1000, 5).log_probs;
  });
  for_every_version([]<class T>(CpuContext& ctx) {
    const auto logits = logits_of<T>(9, 131);
    const Top<T> all = top_of(ctx, logits, 131, 4);
    for (std::int64_t r = 0; r < 9; ++r) {
      const Top<T> alone = top_of(ctx, part(logits, r * 131, 131), 131, 4);
      EXPECT_TRUE(same_bits(alone.log_probs, part(all.log_probs, r * 4, 4)));
      EXPECT_EQ(alone.ids, part(all.ids, r * 4, 4));
    }
  });
}

struct DrawSetup {
  reference::SampleCuts cuts;
  std::uint64_t seed = 0;
  std::int32_t position = 0;
  std::vector<std::int64_t> streams = {};  // of each row; none: 0, 1, 2, …
};

template <class T>
struct Draws {
  std::vector<std::int32_t> ids;
  std::vector<T> log_probs;
};

// A draw from each row of logits.
template <class T>
Draws<T> draw(CpuContext& ctx, const std::vector<T>& logits, std::int64_t vocabulary,
              const DrawSetup& setup) {
  const auto rows = static_cast<std::int64_t>(logits.size()) / vocabulary;
  // Units in the order opposite to their rows'.
  std::vector<std::int32_t> unit(static_cast<std::size_t>(rows));
  std::vector<std::int64_t> stream(static_cast<std::size_t>(rows));
  for (std::int64_t r = 0; r < rows; ++r) {
    unit[r] = static_cast<std::int32_t>(rows - 1 - r);
    stream[unit[r]] = setup.streams.empty() ? r : setup.streams[r];
  }
  Draws<T> draws{std::vector<std::int32_t>(static_cast<std::size_t>(rows), -1), unwritten<T>(rows)};
  kernels::run(ctx, SampleTokens<T>{.rows = rows,
                                    .vocabulary = vocabulary,
                                    .temperature = setup.cuts.temperature,
                                    .top_k = setup.cuts.top_k,
                                    .top_p = setup.cuts.top_p,
                                    .seed = setup.seed,
                                    .position = setup.position,
                                    .unit = unit.data(),
                                    .stream = stream.data(),
                                    .logits = logits.data(),
                                    .log_probs = draws.log_probs.data(),
                                    .ids = draws.ids.data()});
  return draws;
}

// The same row, so many times.
template <class T>
std::vector<T> repeated(const std::vector<T>& row, std::int64_t times) {
  std::vector<T> all;
  for (std::int64_t i = 0; i < times; ++i) all.insert(all.end(), row.begin(), row.end());
  return all;
}

TEST(SampleTokens, FollowTheDistribution) {
  constexpr std::int64_t kVocabulary = 12, kDraws = 4000;
  const std::vector<reference::SampleCuts> many = {{},
                                                   {.temperature = 0.5},
                                                   {.temperature = 3},
                                                   {.top_k = 5},
                                                   {.top_p = 0.8},
                                                   {.temperature = 2, .top_k = 8, .top_p = 0.7},
                                                   {.top_k = 100},
                                                   {.top_k = 12, .top_p = 0.999999}};
  for_every_version([&]<class T>(CpuContext& ctx) {
    auto row = random_values<T>(kVocabulary, 9, 2);
    row[3] = static_cast<T>(-INFINITY);
    row[7] = row[5];
    const auto logits = repeated(row, kDraws);
    const auto x = row_of(row, 0, kVocabulary);
    const double sum = reference::log_sum(x);
    for (const reference::SampleCuts& cuts : many) {
      const auto probabilities = reference::sample_probabilities(x, cuts);
      const Draws<T> draws = draw(ctx, logits, kVocabulary, {.cuts = cuts});
      std::vector<double> seen(kVocabulary, 0);
      for (std::int64_t r = 0; r < kDraws; ++r) {
        ASSERT_GE(draws.ids[r], 0);
        ASSERT_LT(draws.ids[r], kVocabulary);
        ++seen[draws.ids[r]];
        ASSERT_NEAR(draws.log_probs[r], x[draws.ids[r]] - sum, 10 * kTolerance<T>);
      }
      double chi_squared = 0;
      for (std::int64_t i = 0; i < kVocabulary; ++i) {
        const double mean = probabilities[i] * kDraws;
        if (mean == 0) {
          EXPECT_EQ(seen[i], 0) << "token " << i << " was cut";
        } else {
          chi_squared += (seen[i] - mean) * (seen[i] - mean) / mean;
        }
      }
      // One in a million for eleven degrees of freedom lies at 49.
      EXPECT_LT(chi_squared, 49) << cuts.temperature << ' ' << cuts.top_k << ' ' << cuts.top_p;
    }
  });
}

// Cuts over vocabularies larger than what is sorted at first.
TEST(SampleTokens, AreWithinTheCuts) {
  for_every_version([]<class T>(CpuContext& ctx) {
    for (const std::int64_t vocabulary : {1, 63, 64, 65, 1000}) {
      const auto row = random_values<T>(vocabulary, 11, 1);
      const auto x = row_of(row, 0, vocabulary);
      for (const reference::SampleCuts& cuts : {reference::SampleCuts{.top_p = 0.05},
                                                {.top_p = 0.5},
                                                {.top_p = 0.99},
                                                {.top_k = 70, .top_p = 0.9},
                                                {.top_k = 64},
                                                {.top_k = 65}}) {
        const auto probabilities = reference::sample_probabilities(x, cuts);
        const Draws<T> draws = draw(ctx, repeated(row, 50), vocabulary, {.cuts = cuts});
        for (const std::int32_t id : draws.ids) {
          EXPECT_GT(probabilities[id], 0) << id << " of " << vocabulary << " was cut";
        }
      }
    }
  });
}

TEST(SampleTokens, TheNarrowestCutsTakeTheLikeliest) {
  for_every_version([]<class T>(CpuContext& ctx) {
    for (const std::int64_t vocabulary : kVocabularies) {
      for (const int levels : {0, 3}) {  // 3: many are equally likely, the lowest id is taken
        const auto logits = logits_of<T>(20, vocabulary, levels);
        const auto likeliest = top_of(ctx, logits, vocabulary, 1).ids;
        EXPECT_EQ(draw(ctx, logits, vocabulary, {.cuts = {.top_k = 1}}).ids, likeliest);
        EXPECT_EQ(draw(ctx, logits, vocabulary, {.cuts = {.top_p = 1e-9}}).ids, likeliest);
        EXPECT_EQ(draw(ctx, logits, vocabulary, {.cuts = {.top_k = 7, .top_p = 1e-300}}).ids,
                  likeliest);
      }
      const auto logits = logits_of<T>(20, vocabulary);
      EXPECT_EQ(draw(ctx, logits, vocabulary, {.cuts = {.temperature = 1e-300}}).ids,
                top_of(ctx, logits, vocabulary, 1).ids);
    }
  });
}

TEST(SampleTokens, WhatCannotComeIsNeverDrawn) {
  for_every_version([]<class T>(CpuContext& ctx) {
    std::vector<T> row(100, static_cast<T>(-INFINITY));
    row[0] = row[99] = T(-50);
    for (const reference::SampleCuts& cuts :
         {reference::SampleCuts{}, {.temperature = 1e300}, {.top_k = 50}, {.top_p = 0.999}}) {
      std::set<std::int32_t> seen;
      for (const std::int32_t id : draw(ctx, repeated(row, 200), 100, {.cuts = cuts}).ids) {
        seen.insert(id);
      }
      EXPECT_EQ(seen, (std::set<std::int32_t>{0, 99}));
    }
  });
}

TEST(SampleTokens, ThatAreNoNumbersAreDrawnFromWithoutHarm) {
  for_every_version([]<class T>(CpuContext& ctx) {
    for (const T bad : {static_cast<T>(NAN), static_cast<T>(INFINITY)}) {
      for (const std::int64_t every : {1, 2, 3, 50}) {
        auto logits = logits_of<T>(3, 1000);
        for (std::int64_t i = 0; i < 3000; i += every) logits[i] = bad;
        for (const reference::SampleCuts& cuts :
             {reference::SampleCuts{}, {.top_k = 40}, {.top_k = 900}, {.top_p = 0.9}}) {
          const Draws<T> draws = draw(ctx, logits, 1000, {.cuts = cuts});
          for (std::size_t r = 0; r < 3; ++r) {
            EXPECT_TRUE(draws.ids[r] >= 0 && draws.ids[r] < 1000) << draws.ids[r];
            EXPECT_TRUE(std::isnan(draws.log_probs[r])) << draws.log_probs[r];
          }
        }
      }
    }
    const std::vector<T> impossible(1000, static_cast<T>(-INFINITY));
    for (const std::int64_t top_k : {0, 40}) {
      const Draws<T> draws = draw(ctx, impossible, 1000, {.cuts = {.top_k = top_k}});
      EXPECT_TRUE(std::isnan(draws.log_probs[0]));
    }
  });
}

TEST(SampleTokens, ADrawIsAFunctionOfStreamPositionAndSeed) {
  for_every_version([]<class T>(CpuContext& ctx) {
    const auto row = random_values<T>(300, 4, 1);
    const auto logits = repeated(row, 64);
    const DrawSetup setup{.cuts = {.top_k = 200}, .seed = 3, .position = 2};
    const Draws<T> all = draw(ctx, logits, 300, setup);
    // Alone, and in another order.
    std::vector<std::int64_t> backwards;
    for (std::int64_t r = 0; r < 64; ++r) {
      DrawSetup alone = setup;
      alone.streams = {r};
      const Draws<T> one = draw(ctx, row, 300, alone);
      EXPECT_EQ(one.ids[0], all.ids[r]);
      EXPECT_EQ(one.log_probs[0], all.log_probs[r]);
      backwards.push_back(63 - r);
    }
    DrawSetup other = setup;
    other.streams = backwards;
    auto reversed = draw(ctx, logits, 300, other).ids;
    std::reverse(reversed.begin(), reversed.end());
    EXPECT_EQ(reversed, all.ids);
    // Another seed, position or (beyond 32 bits) stream draws others.
    other = setup;
    other.seed = 4;
    EXPECT_NE(draw(ctx, logits, 300, other).ids, all.ids);
    other = setup;
    other.position = 3;
    EXPECT_NE(draw(ctx, logits, 300, other).ids, all.ids);
    other = setup;
    for (std::int64_t r = 0; r < 64; ++r) other.streams.push_back(r + (std::int64_t{1} << 32));
    EXPECT_NE(draw(ctx, logits, 300, other).ids, all.ids);
  });
}

TEST(SampleTokens, ThreadsChangeNothing) {
  expect_threads_change_nothing([]<class T>(CpuContext& ctx) {
    const Draws<T> draws =
        draw(ctx, logits_of<T>(50, 131), 131, {.cuts = {.top_k = 60, .top_p = 0.9}});
    std::vector<T> all = draws.log_probs;
    all.insert(all.end(), draws.ids.begin(), draws.ids.end());
    return all;
  });
}

// Random hypotheses of few different tokens, so that much is repeated.
template <class T>
void check_bans(CpuContext& ctx, const reference::BanRules& rules, std::int64_t generated) {
  constexpr std::int64_t kRows = 12, kVocabulary = 7, kStride = 40;
  const std::vector<std::int32_t> prefix_length = {0, 5, 1, 9};  // of the units
  std::vector<std::int32_t> tokens(kRows * kStride, -1), unit;
  std::vector<Tokens> hypotheses;
  for (std::int64_t r = 0; r < kRows; ++r) {
    unit.push_back(static_cast<std::int32_t>(r % 4));
    const auto length = static_cast<std::size_t>(prefix_length[unit.back()] + generated);
    Tokens one;
    for (const double u : random_values<double>(static_cast<std::int64_t>(length), 70 + r)) {
      // Row 0 and its like repeat a cycle of r + 1 tokens.
      const auto place = static_cast<std::int32_t>(one.size());
      const auto cycle = static_cast<std::int32_t>(r + 1);
      one.push_back(r % 2 == 0 ? 3 + place % cycle % 4 : static_cast<std::int32_t>((u + 1) * 3.5));
    }
    std::copy(one.begin(), one.end(), tokens.begin() + r * kStride);
    hypotheses.push_back(one);
  }
  auto logits = random_values<T>(kRows * kVocabulary, 1, 3);
  logits[2 * kVocabulary + 4] = static_cast<T>(-INFINITY);
  const auto before = logits;
  std::vector<double> banned(kRows, NAN);
  kernels::run(ctx, BanTokens<T>{.rows = kRows,
                                 .vocabulary = kVocabulary,
                                 .stride = kStride,
                                 .begin_token = rules.begin_token,
                                 .end_token = rules.end_token,
                                 .generated = generated,
                                 .min_length = rules.min_length,
                                 .no_repeat_ngram = rules.no_repeat_ngram,
                                 .max_repeats = rules.max_repeats,
                                 .hypotheses = {.tokens = tokens.data(), .unit = unit.data()},
                                 .prefix_length = prefix_length.data(),
                                 .logits = logits.data(),
                                 .banned = banned.data()});
  for (std::int64_t r = 0; r < kRows; ++r) {
    std::vector<double> taken;
    for (std::int32_t token = 0; token < kVocabulary; ++token) {
      const T was = before[r * kVocabulary + token], is = logits[r * kVocabulary + token];
      if (reference::is_banned(hypotheses[r], token, rules)) {
        ASSERT_EQ(is, static_cast<T>(-INFINITY)) << "row " << r << ", token " << token;
        taken.push_back(was);
      } else {
        ASSERT_EQ(is, was) << "row " << r << ", token " << token;
      }
    }
    ASSERT_NEAR(banned[r], reference::log_sum(taken), kTolerance<T>) << "row " << r;
  }
}

TEST(BanTokens, AreThoseThatBreakARule) {
  for_every_version([]<class T>(CpuContext& ctx) {
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
                    {.begin_token = 0,
                     .end_token = 4,
                     .min_length = 9,
                     .no_repeat_ngram = 2,
                     .max_repeats = 2},
                    generated);
    }
  });
}

TEST(BanTokens, TheEndMayAlwaysCome) {
  CpuContext ctx;
  // Only the end is left: every other token has come.
  std::vector<std::int32_t> tokens{0, 2, 3, 2}, unit{0};
  const std::int32_t prefix_length = 0;
  std::vector<float> logits(4, 0);
  kernels::run(ctx, BanTokens<float>{.rows = 1,
                                     .vocabulary = 4,
                                     .stride = 4,
                                     .generated = 4,
                                     .no_repeat_ngram = 1,
                                     .max_repeats = 1,
                                     .hypotheses = {.tokens = tokens.data(), .unit = unit.data()},
                                     .prefix_length = &prefix_length,
                                     .logits = logits.data()});
  EXPECT_EQ(logits, (std::vector<float>{-INFINITY, -INFINITY, 0, -INFINITY}));
}

// A whole beam search over invented scores, the kernel beside the lists.
struct BeamSetup {
  std::int64_t beam = 1, candidates = 1;
  std::int32_t vocabulary = 10;
  std::vector<std::int32_t> prefix_length, max_length;  // of the units
  double end_rate = 0.2;         // how often </s> is among a row's candidates
  double impossible_rate = 0.0;  // how often a candidate cannot come
  int levels = 0;                // so many different scores, so that sums are equal
  std::uint64_t seed = 1;
};

template <class T>
class BeamSearch {
 public:
  explicit BeamSearch(const BeamSetup& setup)
      : setup_(setup),
        units_(static_cast<std::int64_t>(setup.prefix_length.size())),
        stride_(*std::max_element(setup.max_length.begin(), setup.max_length.end()) + 1),
        now_(units_ * setup.beam, stride_),
        then_(units_ * setup.beam, stride_),
        finished_(units_ * setup.beam, stride_),
        finished_length_(index(units_ * setup.beam), -1),
        finished_ended_(index(units_ * setup.beam), -1),
        finished_count_(index(units_), 0) {
    for (std::int32_t u = 0; u < units_; ++u) {
      reference::BeamRow row;
      for (std::int32_t i = 0; i < setup.prefix_length[u]; ++i) {
        row.tokens.push_back(3 + i);
        row.token_scores.push_back(0);
        now_.tokens[u * stride_ + i] = 3 + i;
        now_.token_scores[u * stride_ + i] = 0;
      }
      now_.score[u] = 0;
      now_.unit[u] = u;
      active_.push_back({.number = u, .rows = {row}});
    }
  }

  // Every step, held against the lists; the number of them.
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
          unit(index(rows), -1) {}
    kernels::SearchRows rows() {
      return {tokens.data(), token_scores.data(), score.data(), unit.data()};
    }
    std::vector<std::int32_t> tokens;
    std::vector<float> token_scores;
    std::vector<double> score;
    std::vector<std::int32_t> unit;
  };

  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

  // Descending scores of different tokens, </s> now and then among them.
  void invent(std::int64_t rows, int step, std::vector<T>& log_probs,
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
    const std::int64_t after = active * setup_.beam;
    std::vector<T> log_probs;
    std::vector<std::int32_t> ids;
    invent(active * width, step, log_probs, ids);
    std::vector<std::int32_t> parents(index(after), -1), next(index(after), -1),
        row_source(index(after), -1), unit_source;
    for (std::int32_t u = 0; u < units_; ++u) unit_source.push_back(100 + u);
    std::int32_t going_on = -1;
    kernels::run(ctx, BeamStep<T>{.units = active,
                                  .width = width,
                                  .beam = setup_.beam,
                                  .candidates = setup_.candidates,
                                  .stride = stride_,
                                  .generated = step,
                                  .end_token = kEnd,
                                  .log_probs = log_probs.data(),
                                  .ids = ids.data(),
                                  .prefix_length = setup_.prefix_length.data(),
                                  .max_length = setup_.max_length.data(),
                                  .from = now_.rows(),
                                  .to = then_.rows(),
                                  .finished = {.tokens = finished_.tokens.data(),
                                               .token_scores = finished_.token_scores.data(),
                                               .score = finished_.score.data(),
                                               .length = finished_length_.data(),
                                               .ended = finished_ended_.data(),
                                               .count = finished_count_.data()},
                                  .parents = parents.data(),
                                  .next = next.data(),
                                  .row_source = row_source.data(),
                                  .unit_source = unit_source.data(),
                                  .active = &going_on});

    std::vector<reference::BeamUnit> left;
    for (std::int64_t u = 0; u < active; ++u) {
      reference::BeamUnit& unit = active_[index(u)];
      reference::BeamCandidates candidates{.first_row = u * width};
      for (std::int64_t j = 0; j < width; ++j) {
        const std::int64_t at = (u * width + j) * setup_.candidates;
        candidates.log_probs.push_back(row_of(log_probs, u * width + j, setup_.candidates));
        candidates.ids.push_back(part(ids, at, setup_.candidates));
      }
      const bool goes_on = reference::beam_step(
          unit, candidates,
          {.beam = setup_.beam, .max_length = setup_.max_length[unit.number], .end_token = kEnd});
      if (goes_on) {
        left.push_back(unit);
      } else {
        done_.push_back(unit);
      }
    }
    ASSERT_EQ(going_on, static_cast<std::int32_t>(left.size())) << "step " << step;
    for (std::size_t u = 0; u < left.size(); ++u) {
      for (std::int64_t j = 0; j < setup_.beam; ++j) {
        const std::int64_t row = static_cast<std::int64_t>(u) * setup_.beam + j;
        SCOPED_TRACE("step " + std::to_string(step) + ", row " + std::to_string(row));
        ASSERT_EQ(then_.unit[row], left[u].number);
        ASSERT_EQ(row_source[row], 100 + left[u].number);
        if (index(j) >= left[u].rows.size()) {  // an empty place: nothing can come of it
          ASSERT_EQ(then_.score[row], -INFINITY);
          ASSERT_TRUE(parents[row] >= 0 && parents[row] < active * width);
          ASSERT_TRUE(next[row] >= 0 && next[row] < setup_.vocabulary);
          continue;
        }
        const reference::BeamRow& expected = left[u].rows[index(j)];
        const auto length = static_cast<std::int64_t>(expected.tokens.size());
        ASSERT_EQ(part(then_.tokens, row * stride_, length), expected.tokens);
        ASSERT_EQ(part(then_.token_scores, row * stride_, length), expected.token_scores);
        ASSERT_EQ(then_.score[row], expected.score);
        ASSERT_EQ(parents[row], expected.parent);
        ASSERT_EQ(next[row], expected.tokens.back());
      }
      // As many rows as the kernel keeps; those of empty places have nothing to say.
      reference::BeamRow nothing = left[u].rows[0];
      nothing.score = -INFINITY;
      left[u].rows.resize(index(setup_.beam), nothing);
    }
    active_ = left;
    std::swap(now_, then_);
  }

  void check_finished() const {
    for (const reference::BeamUnit& unit : done_) {
      SCOPED_TRACE("unit " + std::to_string(unit.number));
      ASSERT_EQ(finished_count_[unit.number], static_cast<std::int32_t>(unit.finished.size()));
      for (std::size_t f = 0; f < unit.finished.size(); ++f) {
        const std::int64_t at = unit.number * setup_.beam + static_cast<std::int64_t>(f);
        const reference::BeamRow& expected = unit.finished[f];
        const auto length = static_cast<std::int64_t>(expected.tokens.size());
        ASSERT_EQ(finished_length_[at], length);
        ASSERT_EQ(finished_ended_[at], expected.ended ? 1 : 0);
        ASSERT_EQ(finished_.score[at], expected.score);
        ASSERT_EQ(part(finished_.tokens, at * stride_, length), expected.tokens);
        ASSERT_EQ(part(finished_.token_scores, at * stride_,
                       static_cast<std::int64_t>(expected.token_scores.size())),
                  expected.token_scores);
      }
    }
  }

  BeamSetup setup_;
  std::int64_t units_, stride_;
  Rows now_, then_, finished_;
  std::vector<std::int32_t> finished_length_, finished_ended_, finished_count_;
  std::vector<reference::BeamUnit> active_, done_;
};

TEST(BeamStep, AgreesWithSortedListsToTheEnd) {
  for_every_version([]<class T>(CpuContext& ctx) {
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

// A vocabulary smaller than the beam: at first there are not candidates enough.
TEST(BeamStep, LeavesPlacesEmptyForWhichThereIsNoCandidate) {
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

// One unit, one step: rows of scores with their tokens.
struct OneStep {
  std::vector<std::vector<std::pair<float, std::int32_t>>> rows;
  std::int64_t beam = 2;
  std::int32_t max_length = 10;
  std::int32_t already_finished = 0;
};

struct StepResult {
  std::vector<std::int32_t> next;  // newest tokens of rows that go on
  std::vector<double> finished;    // scores of those that ended now
  std::int32_t active = -1;
};

StepResult take(const OneStep& one) {
  constexpr std::int64_t kStride = 12;
  CpuContext ctx;
  const auto width = static_cast<std::int64_t>(one.rows.size()), beam = one.beam;
  std::vector<float> log_probs;
  std::vector<std::int32_t> ids;
  for (const auto& row : one.rows) {
    for (const auto& [score, id] : row) {
      log_probs.push_back(score);
      ids.push_back(id);
    }
  }
  const auto rows = static_cast<std::size_t>(std::max(width, beam));
  const std::size_t room = rows * kStride;
  std::vector<std::int32_t> tokens(room, 5), to_tokens(room), done_tokens(room);
  std::vector<float> scores(room, 0), to_scores(room), done_scores(room);
  std::vector<double> score(rows, 0), to_score(rows), done_score(rows);
  std::vector<std::int32_t> unit(rows, 0), to_unit(rows), length(rows), ended(rows), parents(rows),
      next(rows, -1), source(rows);
  std::int32_t count = one.already_finished, active = -1;
  const std::int32_t prefix_length = 0, unit_source = 0;
  kernels::run(ctx, BeamStep<float>{
                        .units = 1,
                        .width = width,
                        .beam = beam,
                        .candidates = static_cast<std::int64_t>(one.rows[0].size()),
                        .stride = kStride,
                        .generated = 3,
                        .log_probs = log_probs.data(),
                        .ids = ids.data(),
                        .prefix_length = &prefix_length,
                        .max_length = &one.max_length,
                        .from = {tokens.data(), scores.data(), score.data(), unit.data()},
                        .to = {to_tokens.data(), to_scores.data(), to_score.data(), to_unit.data()},
                        .finished = {done_tokens.data(), done_scores.data(), done_score.data(),
                                     length.data(), ended.data(), &count},
                        .parents = parents.data(),
                        .next = next.data(),
                        .row_source = source.data(),
                        .unit_source = &unit_source,
                        .active = &active});
  StepResult result{.active = active};
  for (std::int32_t f = one.already_finished; f < count; ++f)
    result.finished.push_back(done_score[f]);
  if (active > 0) result.next = next;
  return result;
}

TEST(BeamStep, AnEndCountsAmongTheFirstBeamOnly) {
  // </s> is second of a beam of two: it ends, and two others go on.
  const StepResult second = take({.rows = {{{-1, 7}, {-2, kEnd}, {-9, 8}}}});
  EXPECT_EQ(second.finished, (std::vector<double>{-2}));
  EXPECT_EQ(second.next, (std::vector<std::int32_t>{7, 8}));
  // It is third: too late, nothing ends.
  const StepResult third = take({.rows = {{{-1, 7}, {-2, 8}, {-3, kEnd}}}});
  EXPECT_TRUE(third.finished.empty());
  EXPECT_EQ(third.next, (std::vector<std::int32_t>{7, 8}));
  // Third of all, although first of its row.
  const StepResult other =
      take({.rows = {{{-1, 7}, {-2, 8}, {-9, 9}}, {{-3, kEnd}, {-4, 3}, {-5, 4}}}});
  EXPECT_TRUE(other.finished.empty());
}

TEST(BeamStep, AUnitLeavesWhenItsBeamHasEnded) {
  const OneStep both{.rows = {{{-1, kEnd}, {-4, 8}, {-9, 9}}, {{-2, kEnd}, {-5, 8}, {-9, 9}}}};
  const StepResult result = take(both);
  EXPECT_EQ(result.finished, (std::vector<double>{-1, -2}));
  EXPECT_EQ(result.active, 0);
  // With one from before, one more is enough, and a second one does not fit.
  OneStep full = both;
  full.already_finished = 1;
  EXPECT_EQ(take(full).finished, (std::vector<double>{-1}));
  EXPECT_EQ(take(full).active, 0);
}

TEST(BeamStep, AtTheMaximumLengthTheBestAreCutThere) {
  const StepResult result =
      take({.rows = {{{-1, 7}, {-2, kEnd}, {-3, 8}}}, .beam = 2, .max_length = 4});
  EXPECT_EQ(result.finished, (std::vector<double>{-1, -2}));
  EXPECT_EQ(result.active, 0);
}

TEST(BeamStep, AUnitWithoutAnyCandidateLeavesWithNothing) {
  for (const float score : {-INFINITY, NAN}) {
    const StepResult result = take({.rows = {{{score, 7}, {score, 8}, {score, kEnd}}}});
    EXPECT_TRUE(result.finished.empty());
    EXPECT_EQ(result.active, 0);
  }
}

}  // namespace
}  // namespace nunchi::testing
