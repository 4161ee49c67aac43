#include "nunchi/kernels/search.h"

#include <map>
#include <set>

#include "tests/reference/search.h"
#include "tests/reference/versions.h"

namespace nunchi::testing {
namespace {

using kernels::BanTokens;
using kernels::SampleTokens;
using kernels::TopTokens;

constexpr std::int32_t kBegin = 1, kEnd = 2;

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
    const std::vector<kernels::UnitOptions> options(3, {.min_length = 1});
    std::vector<std::int32_t> unit{0, 1, 2}, length(3, 0);
    std::vector<double> banned(3, NAN);
    // Row 2's likeliest token is what may not come.
    logits[2 * kVocabulary + kBegin] = 30;
    const auto all = logits;
    kernels::run(ctx, BanTokens<T>{.rows = 3,
                                   .vocabulary = kVocabulary,
                                   .stride = 1,
                                   .suppressed_token = kBegin,
                                   .end_token = kEnd,
                                   .hypotheses = {.unit = unit.data(), .length = length.data()},
                                   .options = options.data(),
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
  expect_same_bits_for_any_threads([]<class T>(CpuContext& ctx) {
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
  constexpr std::int32_t kPrefix = 2;
  std::vector<std::int32_t> unit(static_cast<std::size_t>(rows)),
      length(static_cast<std::size_t>(rows), kPrefix + setup.position);
  std::vector<kernels::UnitOptions> options(static_cast<std::size_t>(rows),
                                            {.seed = setup.seed,
                                             .temperature = setup.cuts.temperature,
                                             .top_p = setup.cuts.top_p,
                                             .top_k = setup.cuts.top_k,
                                             .sample = 1,
                                             .prefix_length = kPrefix});
  for (std::int64_t r = 0; r < rows; ++r) {
    unit[r] = static_cast<std::int32_t>(rows - 1 - r);
    options[unit[r]].stream = setup.streams.empty() ? r : setup.streams[r];
  }
  Draws<T> draws{std::vector<std::int32_t>(static_cast<std::size_t>(rows), -1), unwritten<T>(rows)};
  kernels::run(ctx, SampleTokens<T>{.rows = rows,
                                    .vocabulary = vocabulary,
                                    .hypotheses = {.unit = unit.data(), .length = length.data()},
                                    .options = options.data(),
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

// Rows of units that do not sample keep what they have.
TEST(SampleTokens, AreDrawnForUnitsThatSampleOnly) {
  for_every_version([]<class T>(CpuContext& ctx) {
    const auto logits = logits_of<T>(3, 50);
    std::vector<std::int32_t> unit{1, 0, 2}, length(3, 0), ids(3, -1);
    const std::vector<kernels::UnitOptions> options{{}, {.stream = 4, .sample = 1}, {}};
    std::vector<T> log_probs(3, T(7));
    kernels::run(ctx, SampleTokens<T>{.rows = 3,
                                      .vocabulary = 50,
                                      .hypotheses = {.unit = unit.data(), .length = length.data()},
                                      .options = options.data(),
                                      .logits = logits.data(),
                                      .log_probs = log_probs.data(),
                                      .ids = ids.data()});
    EXPECT_GE(ids[0], 0);
    EXPECT_LE(log_probs[0], T(0));
    EXPECT_EQ(part(ids, 1, 2), (std::vector<std::int32_t>{-1, -1}));
    EXPECT_EQ(part(log_probs, 1, 2), (std::vector<T>{T(7), T(7)}));
  });
}

TEST(SampleTokens, ThreadsChangeNothing) {
  expect_same_bits_for_any_threads([]<class T>(CpuContext& ctx) {
    const Draws<T> draws =
        draw(ctx, logits_of<T>(50, 131), 131, {.cuts = {.top_k = 60, .top_p = 0.9}});
    std::vector<T> all = draws.log_probs;
    all.insert(all.end(), draws.ids.begin(), draws.ids.end());
    return all;
  });
}

}  // namespace
}  // namespace nunchi::testing
