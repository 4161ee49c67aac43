#include "nunchi/kernels/search.h"

#include "tests/kernels/cuda/compare.h"
#include "tests/kernels/cuda/unit_options.h"
#include "tests/kernels/cuda/values.h"

namespace nunchi::testing {
namespace {

// Rows of random logits. With `levels`, they are rounded to few different values, so that many are
// equal.
std::vector<float> logits_of(std::int64_t rows, std::int64_t vocabulary, int levels = 0,
                             double scale = 8) {
  auto logits = random_values<float>(rows * vocabulary, 5, scale);
  if (levels > 0) {
    for (float& x : logits) {
      x = static_cast<float>(std::floor(static_cast<double>(x) / scale * levels));
    }
  }
  return logits;
}

struct Found {
  std::vector<std::int32_t> ids;
  std::vector<double> log_probs;
};

struct Rows {
  std::vector<float> logits;
  std::int64_t vocabulary = 0;
  std::vector<double> banned = {};
  std::int64_t count() const { return static_cast<std::int64_t>(logits.size()) / vocabulary; }
};

Found top_of(ContextBase& context, DType dtype, const Rows& rows, std::int64_t count) {
  const Tensor logits =
      rounded_tensor(context, dtype, rows.logits, {rows.count(), rows.vocabulary});
  const Tensor banned =
      rows.banned.empty() ? Tensor() : from_host(context, rows.banned, {rows.count()});
  const Tensor log_probs =
      unwritten_tensor(context, accumulator_type(dtype), {rows.count(), count});
  const Tensor ids = Tensor::empty(context, DType::i32, {rows.count(), count});
  fill(ids, -1);
  dispatch(logits, [&]<class T>(auto& ctx) {
    kernels::run(ctx,
                 kernels::TopTokens<T>{.rows = rows.count(),
                                       .vocabulary = rows.vocabulary,
                                       .count = count,
                                       .logits = logits.data<T>(),
                                       .banned = banned.defined() ? banned.data<double>() : nullptr,
                                       .log_probs = log_probs.data<Accumulator<T>>(),
                                       .ids = ids.data<std::int32_t>()});
  });
  return {to_host<std::int32_t>(ids), to_host_f64(log_probs)};
}

// Expects the CPU's tokens in both types, and log-probabilities near the CPU's.
template <class F>
void expect_same(F&& find) {
  CpuContext cpu;
  CudaContext cuda;
  cuda.arena().poison();
  const Found expected = find(cpu, DType::f32);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    SCOPED_TRACE(name_of(dtype));
    const Found found = find(cuda, dtype);
    EXPECT_EQ(found.ids, expected.ids);
    expect_near(found.log_probs, expected.log_probs, 1e-5);
  }
}

void expect_top(const Rows& rows, std::int64_t count) {
  SCOPED_TRACE(std::to_string(rows.count()) + " rows of " + std::to_string(rows.vocabulary) +
               ", first " + std::to_string(count));
  expect_same(
      [&](ContextBase& context, DType dtype) { return top_of(context, dtype, rows, count); });
}

TEST(TopTokensOnGpu, MatchTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t vocabulary : {1, 2, 63, 64, 65, 1000, 2049, 5000}) {
    for (const std::int64_t count : {1, 2, 5, 8, 9, 32, 33, 65, 128, 129, 1000}) {
      if (count > vocabulary) continue;
      expect_top({logits_of(5, vocabulary), vocabulary}, count);
    }
  }
}

// Rows of many vocabulary chunks, of few, and of one.
TEST(TopTokensOnGpu, MatchTheCpuForAnyNumberOfRows) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t rows : {1, 5, 33, 130, 450}) {
    for (const std::int64_t count : {1, 5, 65}) {
      expect_top({logits_of(rows, 8200), 8200}, count);
    }
  }
  for (const std::int64_t rows : {1, 31, 200}) {
    expect_top({logits_of(rows, 37000), 37000}, 5);
  }
  for (const std::int64_t rows : {3, 200}) expect_top({logits_of(rows, 50257), 50257}, 6);
  expect_top({logits_of(2, 37001), 37001}, 65);
}

// Also where all logits of a chunk are equal, more than a block sorts at once.
TEST(TopTokensOnGpu, TiesGoToTheLowerId) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t vocabulary : {63, 64, 1000, 5000, 37000}) {
    for (const int levels : {1, 2, 30}) {
      for (const std::int64_t count : {1, 7, 60}) {
        expect_top({logits_of(4, vocabulary, levels), vocabulary}, count);
      }
    }
  }
  Rows zeros{std::vector<float>(3000, 0.0f), 3000};
  for (std::size_t i = 0; i < 3000; i += 2) zeros.logits[i] = -0.0f;
  expect_top(zeros, 6);
}

TEST(TopTokensOnGpu, ImpossibleTokensComeLast) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t vocabulary : {2, 64, 65, 1000, 9000}) {
    Rows rows{logits_of(4, vocabulary), vocabulary};
    for (std::int64_t i = 0; i < 4 * vocabulary; ++i) {
      if (i % vocabulary % 3 != 1) rows.logits[static_cast<std::size_t>(i)] = -INFINITY;
    }
    for (const std::int64_t count : {std::int64_t{1}, std::min<std::int64_t>(vocabulary, 1000)}) {
      expect_top(rows, count);
    }
    // All tokens but one in the last chunk are impossible.
    std::fill(rows.logits.begin(), rows.logits.end(), -INFINITY);
    for (std::int64_t r = 1; r <= 4; ++r) {
      rows.logits[static_cast<std::size_t>(r * vocabulary - 1)] = 3;
    }
    expect_top(rows, 2);
  }
}

TEST(TopTokensOnGpu, LogProbabilitiesIncludeBannedTokens) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t vocabulary : {65, 37000}) {
    expect_top({logits_of(3, vocabulary), vocabulary, {-INFINITY, 3.5, 30}}, 5);
  }
}

TEST(TopTokensOnGpu, PropagateNaN) {
  SKIP_WITHOUT_GPU();
  CudaContext cuda;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const std::int64_t vocabulary : {100, 9001}) {
      for (const std::int64_t index : {0, 5, 63, 64, 99}) {
        for (const float bad : {NAN, INFINITY}) {
          Rows rows{logits_of(1, vocabulary), vocabulary};
          rows.logits[static_cast<std::size_t>(vocabulary - 1 - index)] = bad;
          const Found found = top_of(cuda, dtype, rows, 5);
          for (const double log_prob : found.log_probs) EXPECT_FALSE(std::isfinite(log_prob));
          for (const std::int32_t id : found.ids) EXPECT_TRUE(id >= 0 && id < vocabulary) << id;
        }
      }
      for (const float all : {-INFINITY, NAN}) {
        const Rows rows{
            std::vector<float>(static_cast<std::size_t>(vocabulary), all), vocabulary, {1.0}};
        const Found found = top_of(cuda, dtype, rows, 5);
        for (const double log_prob : found.log_probs) EXPECT_TRUE(std::isnan(log_prob));
        for (const std::int32_t id : found.ids) EXPECT_TRUE(id >= 0 && id < vocabulary) << id;
      }
    }
  }
}

TEST(TopTokensOnGpu, DeterministicRowsDoNotDependOnOtherRows) {
  SKIP_WITHOUT_GPU();
  CudaContext cuda({.deterministic = true});
  for (const std::int64_t vocabulary : {37000, 9001}) {
    const Rows all{logits_of(100, vocabulary), vocabulary};
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Found together = top_of(cuda, dtype, all, 4);
      for (const std::int64_t r : {0, 1, 77, 99}) {
        const auto begin = all.logits.begin() + r * vocabulary;
        const Found alone = top_of(cuda, dtype, {{begin, begin + vocabulary}, vocabulary}, 4);
        for (std::size_t i = 0; i < 4; ++i) {
          EXPECT_EQ(alone.ids[i], together.ids[static_cast<std::size_t>(r) * 4 + i]);
          EXPECT_EQ(alone.log_probs[i], together.log_probs[static_cast<std::size_t>(r) * 4 + i]);
        }
      }
    }
  }
}

struct SamplingOptions {
  double temperature = 1;
  std::int64_t top_k = 0;
  double top_p = 1;
};

Found sample(ContextBase& context, DType dtype, const Rows& rows, const SamplingOptions& sampling) {
  const Tensor logits =
      rounded_tensor(context, dtype, rows.logits, {rows.count(), rows.vocabulary});
  // Units are in the opposite order of their rows.
  std::vector<std::int32_t> unit, length;
  std::vector<kernels::UnitOptions> options;
  for (std::int64_t r = 0; r < rows.count(); ++r) {
    unit.push_back(static_cast<std::int32_t>(rows.count() - 1 - r));
    length.push_back(static_cast<std::int32_t>(3 + (rows.count() - 1 - r) % 2));
    options.push_back({.stream = r * 1000003 + (r % 2 << 33),
                       .seed = 77,
                       .temperature = sampling.temperature,
                       .top_p = sampling.top_p,
                       .top_k = sampling.top_k,
                       .sample = 1,
                       .prefix_length = static_cast<std::int32_t>(r % 2)});
  }
  const Tensor units = from_host(context, unit, {rows.count()});
  const Tensor lengths = from_host(context, length, {rows.count()});
  const DeviceOptions unit_options(context, options);
  const Tensor banned =
      rows.banned.empty() ? Tensor() : from_host(context, rows.banned, {rows.count()});
  const Tensor log_probs = unwritten_tensor(context, accumulator_type(dtype), {rows.count()});
  const Tensor ids = Tensor::empty(context, DType::i32, {rows.count()});
  fill(ids, -1);
  dispatch(logits, [&]<class T>(auto& ctx) {
    kernels::run(
        ctx, kernels::SampleTokens<T>{.rows = rows.count(),
                                      .vocabulary = rows.vocabulary,
                                      .hypotheses = {.unit = units.data<std::int32_t>(),
                                                     .length = lengths.data<std::int32_t>()},
                                      .options = unit_options.data(),
                                      .logits = logits.data<T>(),
                                      .banned = banned.defined() ? banned.data<double>() : nullptr,
                                      .log_probs = log_probs.data<Accumulator<T>>(),
                                      .ids = ids.data<std::int32_t>()});
  });
  return {to_host<std::int32_t>(ids), to_host_f64(log_probs)};
}

void expect_samples(const Rows& rows, const SamplingOptions& sampling) {
  SCOPED_TRACE(std::to_string(rows.count()) + " rows of " + std::to_string(rows.vocabulary) +
               ", temperature " + std::to_string(sampling.temperature) + ", top " +
               std::to_string(sampling.top_k) + ", " + std::to_string(sampling.top_p));
  expect_same(
      [&](ContextBase& context, DType dtype) { return sample(context, dtype, rows, sampling); });
}

const std::vector<SamplingOptions> kSamplingOptions = {
    {},
    {.temperature = 0.5},
    {.temperature = 3},
    {.top_k = 1},
    {.top_k = 7},
    {.top_k = 40},
    {.top_k = 900},
    {.top_k = 100000},
    {.top_p = 1e-9},
    {.top_p = 0.1},
    {.top_p = 0.8},
    {.top_p = 0.999999},
    {.temperature = 2, .top_k = 50, .top_p = 0.7},
    {.temperature = 1e-300},
    {.temperature = 0.1, .top_k = 70, .top_p = 0.95}};

TEST(SampleTokensOnGpu, MatchTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const SamplingOptions& sampling : kSamplingOptions) {
    for (const std::int64_t vocabulary : {1, 31, 64, 1000, 1025}) {
      // Scales at which a few tokens, or very many, hold most of the probability.
      for (const double scale : {0.5, 8.0}) {
        expect_samples({logits_of(60, vocabulary, 0, scale), vocabulary}, sampling);
      }
      expect_samples({logits_of(60, vocabulary, 3), vocabulary}, sampling);
    }
    expect_samples({logits_of(6, 37000), 37000}, sampling);
    expect_samples({logits_of(6, 37001, 0, 2), 37001}, sampling);
  }
}

TEST(SampleTokensOnGpu, ImpossibleTokensAreNeverSampled) {
  SKIP_WITHOUT_GPU();
  Rows rows{std::vector<float>(200 * 100, -INFINITY), 100, std::vector<double>(200, -2.0)};
  for (std::size_t r = 0; r < 200; ++r) rows.logits[r * 100] = rows.logits[r * 100 + 99] = -50;
  for (const SamplingOptions& sampling :
       {SamplingOptions{}, {.temperature = 1e300}, {.top_k = 50}, {.top_p = 0.999}}) {
    expect_samples(rows, sampling);
  }
}

TEST(SampleTokensOnGpu, NaNLogitsGiveAValidTokenAndANaNLogProbability) {
  SKIP_WITHOUT_GPU();
  CudaContext cuda;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const float bad : {NAN, INFINITY}) {
      for (const std::size_t every : {1, 2, 50}) {
        Rows rows{logits_of(3, 1000), 1000};
        for (std::size_t i = 0; i < 3000; i += every) rows.logits[i] = bad;
        for (const SamplingOptions& sampling :
             {SamplingOptions{}, {.top_k = 40}, {.top_k = 900}, {.top_p = 0.9}}) {
          const Found found = sample(cuda, dtype, rows, sampling);
          for (std::size_t r = 0; r < 3; ++r) {
            EXPECT_TRUE(found.ids[r] >= 0 && found.ids[r] < 1000) << found.ids[r];
            EXPECT_TRUE(std::isnan(found.log_probs[r])) << found.log_probs[r];
          }
        }
      }
    }
    const Rows impossible{std::vector<float>(1000, -INFINITY), 1000};
    for (const std::int64_t top_k : {0, 40}) {
      EXPECT_TRUE(std::isnan(sample(cuda, dtype, impossible, {.top_k = top_k}).log_probs[0]));
    }
  }
}

}  // namespace
}  // namespace nunchi::testing
