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

// Rows of random logits. With `levels`, they are rounded to few different values, so that many are
// equal.
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
    ASSERT_EQ(subrange(top.ids, r * count, count), ids) << "row " << r << ", first " << count;
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

TEST(TopTokens, MatchTheSortedVocabulary) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const std::int64_t vocabulary : kVocabularies) {
      for (const std::int64_t count : {1, 2, 5, 64, 65, 1000}) {
        if (count > vocabulary) continue;
        SCOPED_TRACE("vocabulary " + std::to_string(vocabulary));
        expect_top(ctx, logits_of<T>(5, vocabulary), vocabulary, count);
      }
    }
  });
}

TEST(TopTokens, TiesGoToTheLowerId) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
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

TEST(TopTokens, ImpossibleTokensComeLast) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
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

// Tokens that BanTokens removed still count in the sum: log-probabilities are those of the model.
TEST(TopTokens, LogProbabilitiesIncludeBannedTokens) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    constexpr std::int64_t kVocabulary = 65;
    auto logits = logits_of<T>(3, kVocabulary);
    const std::vector<kernels::UnitOptions> options(3, {.min_length = 1});
    std::vector<std::int32_t> unit{0, 1, 2}, length(3, 0);
    std::vector<double> banned(3, NAN);
    // The most likely token of row 2 is banned.
    logits[2 * kVocabulary + kBegin] = 30;
    const auto original_logits = logits;
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
      const auto x = row_of(original_logits, r, kVocabulary);
      EXPECT_NE(top.ids[r], kBegin);
      EXPECT_NE(top.ids[r], kEnd);
      EXPECT_NEAR(top.log_probs[r], x[top.ids[r]] - reference::log_sum(x), 20 * kTolerance<T>);
      EXPECT_NEAR(banned[r], reference::log_sum({x[kBegin], x[kEnd]}), 20 * kTolerance<T>);
    }
  });
}

TEST(TopTokens, ManySmallProbabilitiesAddUp) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    // 50,000 equal logits: each has a probability of 1 / 50,000.
    const std::vector<T> logits(50000, T(-3));
    const Top<T> top = top_of(ctx, logits, 50000, 2);
    EXPECT_NEAR(top.log_probs[1], -std::log(50000.0), kTolerance<T> * 10);
    EXPECT_EQ(top.ids, (std::vector<std::int32_t>{0, 1}));
  });
}

TEST(TopTokens, PropagateNaN) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const std::int64_t index : {0, 5, 63, 64, 99}) {
      for (const T bad : {static_cast<T>(NAN), static_cast<T>(INFINITY)}) {
        auto logits = logits_of<T>(1, 100);
        logits[index] = bad;
        for (const T log_prob : top_of(ctx, logits, 100, 5).log_probs) {
          EXPECT_FALSE(std::isfinite(log_prob)) << bad << " at " << index;
        }
      }
    }
    const std::vector<T> impossible(100, static_cast<T>(-INFINITY));
    EXPECT_FALSE(std::isfinite(top_of(ctx, impossible, 100, 1).log_probs[0]));
  });
}

TEST(TopTokens, ThreadsAndOtherRowsDoNotChangeBits) {
  expect_same_bits_for_any_threads([]<class T>(CpuContext& ctx) {
    return top_of(ctx, logits_of<T>(37, 1000), 1000, 5).log_probs;
  });
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    const auto logits = logits_of<T>(9, 131);
    const Top<T> all = top_of(ctx, logits, 131, 4);
    for (std::int64_t r = 0; r < 9; ++r) {
      const Top<T> alone = top_of(ctx, subrange(logits, r * 131, 131), 131, 4);
      EXPECT_TRUE(same_bits(alone.log_probs, subrange(all.log_probs, r * 4, 4)));
      EXPECT_EQ(alone.ids, subrange(all.ids, r * 4, 4));
    }
  });
}

struct SampleSetup {
  reference::SamplingOptions sampling;
  std::uint64_t seed = 0;
  std::int32_t position = 0;
  std::vector<std::int64_t> streams = {};  // of each row; empty: 0, 1, 2, …
};

template <class T>
struct Samples {
  std::vector<std::int32_t> ids;
  std::vector<T> log_probs;
};

// Samples a token from each row of logits.
template <class T>
Samples<T> sample(CpuContext& ctx, const std::vector<T>& logits, std::int64_t vocabulary,
                  const SampleSetup& setup) {
  const auto rows = static_cast<std::int64_t>(logits.size()) / vocabulary;
  // Units are in the opposite order of their rows.
  constexpr std::int32_t kPrefix = 2;
  std::vector<std::int32_t> unit(static_cast<std::size_t>(rows)),
      length(static_cast<std::size_t>(rows), kPrefix + setup.position);
  std::vector<kernels::UnitOptions> options(static_cast<std::size_t>(rows),
                                            {.seed = setup.seed,
                                             .temperature = setup.sampling.temperature,
                                             .top_p = setup.sampling.top_p,
                                             .top_k = setup.sampling.top_k,
                                             .sample = 1,
                                             .prefix_length = kPrefix});
  for (std::int64_t r = 0; r < rows; ++r) {
    unit[r] = static_cast<std::int32_t>(rows - 1 - r);
    options[unit[r]].stream = setup.streams.empty() ? r : setup.streams[r];
  }
  Samples<T> samples{std::vector<std::int32_t>(static_cast<std::size_t>(rows), -1),
                     unwritten<T>(rows)};
  kernels::run(ctx, SampleTokens<T>{.rows = rows,
                                    .vocabulary = vocabulary,
                                    .hypotheses = {.unit = unit.data(), .length = length.data()},
                                    .options = options.data(),
                                    .logits = logits.data(),
                                    .log_probs = samples.log_probs.data(),
                                    .ids = samples.ids.data()});
  return samples;
}

// The same row, `times` times.
template <class T>
std::vector<T> repeated(const std::vector<T>& row, std::int64_t times) {
  std::vector<T> rows;
  for (std::int64_t i = 0; i < times; ++i) rows.insert(rows.end(), row.begin(), row.end());
  return rows;
}

TEST(SampleTokens, FollowTheDistribution) {
  constexpr std::int64_t kVocabulary = 12, kSamples = 4000;
  const std::vector<reference::SamplingOptions> all_options = {
      {},
      {.temperature = 0.5},
      {.temperature = 3},
      {.top_k = 5},
      {.top_p = 0.8},
      {.temperature = 2, .top_k = 8, .top_p = 0.7},
      {.top_k = 100},
      {.top_k = 12, .top_p = 0.999999}};
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    auto row = random_values<T>(kVocabulary, 9, 2);
    row[3] = static_cast<T>(-INFINITY);
    row[7] = row[5];
    const auto logits = repeated(row, kSamples);
    const auto x = row_of(row, 0, kVocabulary);
    const double sum = reference::log_sum(x);
    for (const reference::SamplingOptions& sampling : all_options) {
      const auto probabilities = reference::sample_probabilities(x, sampling);
      const Samples<T> samples = sample(ctx, logits, kVocabulary, {.sampling = sampling});
      std::vector<double> seen(kVocabulary, 0);
      for (std::int64_t r = 0; r < kSamples; ++r) {
        ASSERT_GE(samples.ids[r], 0);
        ASSERT_LT(samples.ids[r], kVocabulary);
        ++seen[samples.ids[r]];
        ASSERT_NEAR(samples.log_probs[r], x[samples.ids[r]] - sum, 10 * kTolerance<T>);
      }
      double chi_squared = 0;
      for (std::int64_t i = 0; i < kVocabulary; ++i) {
        const double mean = probabilities[i] * kSamples;
        if (mean == 0) {
          EXPECT_EQ(seen[i], 0) << "token " << i << " has probability 0";
        } else {
          chi_squared += (seen[i] - mean) * (seen[i] - mean) / mean;
        }
      }
      // With eleven degrees of freedom a value above 49 has a probability of one in a million.
      EXPECT_LT(chi_squared, 49) << sampling.temperature << ' ' << sampling.top_k << ' '
                                 << sampling.top_p;
    }
  });
}

// Also for vocabularies larger than the part that is sorted first.
TEST(SampleTokens, StayWithinTopKAndTopP) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const std::int64_t vocabulary : {1, 63, 64, 65, 1000}) {
      const auto row = random_values<T>(vocabulary, 11, 1);
      const auto x = row_of(row, 0, vocabulary);
      for (const reference::SamplingOptions& sampling : {reference::SamplingOptions{.top_p = 0.05},
                                                         {.top_p = 0.5},
                                                         {.top_p = 0.99},
                                                         {.top_k = 70, .top_p = 0.9},
                                                         {.top_k = 64},
                                                         {.top_k = 65}}) {
        const auto probabilities = reference::sample_probabilities(x, sampling);
        const Samples<T> samples =
            sample(ctx, repeated(row, 50), vocabulary, {.sampling = sampling});
        for (const std::int32_t id : samples.ids) {
          EXPECT_GT(probabilities[id], 0) << "token " << id << " of " << vocabulary;
        }
      }
    }
  });
}

TEST(SampleTokens, NarrowestOptionsTakeTheMostLikelyToken) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const std::int64_t vocabulary : kVocabularies) {
      for (const int levels : {0, 3}) {  // 3: many tokens are equally likely
        const auto logits = logits_of<T>(20, vocabulary, levels);
        const auto likeliest = top_of(ctx, logits, vocabulary, 1).ids;
        EXPECT_EQ(sample(ctx, logits, vocabulary, {.sampling = {.top_k = 1}}).ids, likeliest);
        EXPECT_EQ(sample(ctx, logits, vocabulary, {.sampling = {.top_p = 1e-9}}).ids, likeliest);
        EXPECT_EQ(sample(ctx, logits, vocabulary, {.sampling = {.top_k = 7, .top_p = 1e-300}}).ids,
                  likeliest);
      }
      const auto logits = logits_of<T>(20, vocabulary);
      EXPECT_EQ(sample(ctx, logits, vocabulary, {.sampling = {.temperature = 1e-300}}).ids,
                top_of(ctx, logits, vocabulary, 1).ids);
    }
  });
}

TEST(SampleTokens, ImpossibleTokensAreNeverSampled) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    std::vector<T> row(100, static_cast<T>(-INFINITY));
    row[0] = row[99] = T(-50);
    for (const reference::SamplingOptions& sampling :
         {reference::SamplingOptions{}, {.temperature = 1e300}, {.top_k = 50}, {.top_p = 0.999}}) {
      std::set<std::int32_t> seen;
      for (const std::int32_t id :
           sample(ctx, repeated(row, 200), 100, {.sampling = sampling}).ids) {
        seen.insert(id);
      }
      EXPECT_EQ(seen, (std::set<std::int32_t>{0, 99}));
    }
  });
}

TEST(SampleTokens, NaNLogitsGiveAValidTokenAndANaNLogProbability) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const T bad : {static_cast<T>(NAN), static_cast<T>(INFINITY)}) {
      for (const std::int64_t every : {1, 2, 3, 50}) {
        auto logits = logits_of<T>(3, 1000);
        for (std::int64_t i = 0; i < 3000; i += every) logits[i] = bad;
        for (const reference::SamplingOptions& sampling :
             {reference::SamplingOptions{}, {.top_k = 40}, {.top_k = 900}, {.top_p = 0.9}}) {
          const Samples<T> samples = sample(ctx, logits, 1000, {.sampling = sampling});
          for (std::size_t r = 0; r < 3; ++r) {
            EXPECT_TRUE(samples.ids[r] >= 0 && samples.ids[r] < 1000) << samples.ids[r];
            EXPECT_TRUE(std::isnan(samples.log_probs[r])) << samples.log_probs[r];
          }
        }
      }
    }
    const std::vector<T> impossible(1000, static_cast<T>(-INFINITY));
    for (const std::int64_t top_k : {0, 40}) {
      const Samples<T> samples = sample(ctx, impossible, 1000, {.sampling = {.top_k = top_k}});
      EXPECT_TRUE(std::isnan(samples.log_probs[0]));
    }
  });
}

TEST(SampleTokens, DependOnlyOnStreamPositionAndSeed) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    const auto row = random_values<T>(300, 4, 1);
    const auto logits = repeated(row, 64);
    const SampleSetup setup{.sampling = {.top_k = 200}, .seed = 3, .position = 2};
    const Samples<T> expected = sample(ctx, logits, 300, setup);
    // Each row alone, and all rows in another order.
    std::vector<std::int64_t> backwards;
    for (std::int64_t r = 0; r < 64; ++r) {
      SampleSetup alone = setup;
      alone.streams = {r};
      const Samples<T> single = sample(ctx, row, 300, alone);
      EXPECT_EQ(single.ids[0], expected.ids[r]);
      EXPECT_EQ(single.log_probs[0], expected.log_probs[r]);
      backwards.push_back(63 - r);
    }
    SampleSetup changed = setup;
    changed.streams = backwards;
    auto reversed = sample(ctx, logits, 300, changed).ids;
    std::reverse(reversed.begin(), reversed.end());
    EXPECT_EQ(reversed, expected.ids);
    // Another seed, position or stream (even if it differs only above 32 bits) gives other samples.
    changed = setup;
    changed.seed = 4;
    EXPECT_NE(sample(ctx, logits, 300, changed).ids, expected.ids);
    changed = setup;
    changed.position = 3;
    EXPECT_NE(sample(ctx, logits, 300, changed).ids, expected.ids);
    changed = setup;
    for (std::int64_t r = 0; r < 64; ++r) changed.streams.push_back(r + (std::int64_t{1} << 32));
    EXPECT_NE(sample(ctx, logits, 300, changed).ids, expected.ids);
  });
}

// Results of other units must stay unchanged.
TEST(SampleTokens, AreDrawnOnlyForUnitsThatSample) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
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
    EXPECT_EQ(subrange(ids, 1, 2), (std::vector<std::int32_t>{-1, -1}));
    EXPECT_EQ(subrange(log_probs, 1, 2), (std::vector<T>{T(7), T(7)}));
  });
}

TEST(SampleTokens, NumberOfThreadsDoesNotChangeBits) {
  expect_same_bits_for_any_threads([]<class T>(CpuContext& ctx) {
    const Samples<T> samples =
        sample(ctx, logits_of<T>(50, 131), 131, {.sampling = {.top_k = 60, .top_p = 0.9}});
    std::vector<T> results = samples.log_probs;
    results.insert(results.end(), samples.ids.begin(), samples.ids.end());
    return results;
  });
}

}  // namespace
}  // namespace nunchi::testing
