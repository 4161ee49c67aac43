#include "nunchi/kernels/cuda/search/projection_top_tokens.h"

#include "nunchi/ops/tensors.h"
#include "tests/kernels/cuda/compare.h"
#include "tests/kernels/cuda/unit_options.h"
#include "tests/kernels/cuda/values.h"

namespace nunchi::testing {
namespace {

// Hidden rows, a table and hypotheses. All elements are small integers divided by powers of two, so
// logits have the same bits in any order of additions.
struct Inputs {
  std::int64_t rows = 1, vocabulary = 1, width = 64, count = 1;
  int levels = 128;  // number of different elements of the table: with few, many logits are equal
  std::int64_t min_length = 0, max_repeats = 0;
  std::int32_t suppressed_token = 1;
  std::int64_t active = 0;  // number of active rows, the others are zeros; 0: all are active
  // Tokens whose logit is set to a given value, in all rows.
  std::vector<std::pair<std::int64_t, float>> extremes = {};

  std::string description() const {
    return std::to_string(rows) + " rows of " + std::to_string(width) + " times " +
           std::to_string(vocabulary) + ", first " + std::to_string(count) + ", levels " +
           std::to_string(levels) + ", at least " + std::to_string(min_length) + ", repeats " +
           std::to_string(max_repeats) + ", <s> " + std::to_string(suppressed_token) + ", active " +
           std::to_string(active);
  }
};

std::vector<float> grid_values(std::int64_t count, std::uint64_t seed, int levels, float step) {
  std::vector<float> values;
  for (const double x : random_values<double>(count, seed)) {
    values.push_back(static_cast<float>(std::floor(x * levels)) * step);
  }
  return values;
}

struct Result {
  std::vector<std::int32_t> ids;
  std::vector<double> log_probs;
  bool in_tiles = false;
};

Result find(ContextBase& context, DType dtype, const Inputs& in) {
  constexpr std::int64_t kStride = 80, kGenerated = 70;
  auto x = grid_values(in.rows * in.width, 1, 8, 0.125f);
  auto table = grid_values(in.vocabulary * in.width, 2, in.levels, 1.0f / 128);
  for (std::int64_t r = 0; r < in.rows; ++r) x[static_cast<std::size_t>(r * in.width)] = 1;
  const std::int64_t real = in.active > 0 ? in.active : in.rows;
  std::fill(x.begin() + real * in.width, x.end(), 0.0f);
  for (const auto& [token, logit] : in.extremes) {
    table[static_cast<std::size_t>(token * in.width)] = logit;
  }
  // Every second hypothesis is a cycle.
  std::vector<std::int32_t> histories, unit, length;
  const kernels::UnitOptions options{.min_length = static_cast<std::int32_t>(in.min_length),
                                     .max_repeats = static_cast<std::int32_t>(in.max_repeats)};
  const DeviceOptions device_options(context, {options, options});
  for (std::int64_t r = 0; r < in.rows; ++r) {
    unit.push_back(static_cast<std::int32_t>(r % 2));
    length.push_back(static_cast<std::int32_t>(kGenerated + r % 2 * 3));
    for (std::int64_t i = 0; i < kStride; ++i) {
      const std::int64_t index = r % 2 == 0 ? i % (r / 2 % 9 + 1) : i * i + r;
      histories.push_back(static_cast<std::int32_t>(index * 7 % in.vocabulary));
    }
  }
  const Tensor rows = rounded_tensor(context, dtype, x, {in.rows, in.width}),
               weight = rounded_tensor(context, dtype, table, {in.vocabulary, in.width}),
               tokens = from_host(context, histories, {in.rows, kStride}),
               units = from_host(context, unit, {in.rows}),
               active = from_host(context, std::vector{static_cast<std::int32_t>(real)}, {1}),
               lengths = from_host(context, length, {in.rows}),
               banned = unwritten_tensor(context, DType::f64, {in.rows}),
               log_probs = unwritten_tensor(context, DType::f32, {in.rows, in.count}),
               ids = Tensor::empty(context, DType::i32, {in.rows, in.count});
  fill(ids, -1);
  Result found;
  dispatch(rows, [&]<class T>(auto& ctx) {
    if constexpr (std::is_same_v<Accumulator<T>, float>) {
      const kernels::ProjectionTopTokens<T> kernel{
          .product = {.m = in.rows,
                      .n = in.vocabulary,
                      .k = in.width,
                      .a = rows.data<T>(),
                      .b = weight.data<T>(),
                      .transpose_b = true},
          .allowed = {.bans = {.rows = in.rows,
                               .vocabulary = in.vocabulary,
                               .stride = kStride,
                               .suppressed_token = in.suppressed_token,
                               .end_token = 2,
                               .counts = {.active = active.data<std::int32_t>()},
                               .hypotheses = {.tokens = tokens.data<std::int32_t>(),
                                              .unit = units.data<std::int32_t>(),
                                              .length = lengths.data<std::int32_t>()},
                               .options = device_options.data(),
                               .max_banned = kernels::max_banned(options),
                               .banned = banned.data<double>()},
                      .top = {.rows = in.rows,
                              .vocabulary = in.vocabulary,
                              .count = in.count,
                              .banned = banned.data<double>(),
                              .log_probs = log_probs.data<float>(),
                              .ids = ids.data<std::int32_t>()}}};
      kernels::run(ctx, kernel);
      if constexpr (std::is_same_v<T, BFloat16>) {
        found.in_tiles = kernels::can_find_in_tiles(ctx, kernel);
      }
    }
  });
  found.ids = to_host<std::int32_t>(ids);
  found.log_probs = to_host_f64(log_probs);
  found.ids.resize(static_cast<std::size_t>(real * in.count));
  found.log_probs.resize(found.ids.size());
  return found;
}

void expect_like_cpu(const Inputs& in, bool in_tiles = true) {
  SCOPED_TRACE(in.description());
  CpuContext cpu({.threads = 2});
  CudaContext cuda;
  cuda.arena().poison();
  const Result expected = find(cpu, DType::f32, in), found = find(cuda, DType::bf16, in);
  EXPECT_EQ(found.in_tiles, in_tiles);
  expect_near(found.log_probs, expected.log_probs, 3e-6);
  for (std::size_t i = 0; i < found.ids.size(); ++i) {
    // The order of impossible tokens is not defined.
    if (std::isinf(expected.log_probs[i])) {
      EXPECT_TRUE(found.ids[i] >= 0 && found.ids[i] < in.vocabulary) << "at " << i;
    } else {
      ASSERT_EQ(found.ids[i], expected.ids[i]) << "at " << i;
    }
  }
}

// Numbers of rows and vocabularies that fill tiles, and others that do not.
TEST(TopOfProductOnGpu, MatchTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t rows : {1, 15, 16, 17, 32, 33, 64, 65, 128, 130, 300}) {
    for (const std::int64_t vocabulary : {37, 128, 1000, 8001}) {
      expect_like_cpu({.rows = rows, .vocabulary = vocabulary, .width = 128, .count = 5});
    }
  }
}

// As in a replayed step, where the number of rows is an upper bound.
TEST(TopOfProductOnGpu, InactiveRowsAreIgnored) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t rows : {30, 64, 130, 300}) {
    for (const std::int64_t active : {std::int64_t{1}, rows / 2, rows - 1}) {
      expect_like_cpu(
          {.rows = rows, .vocabulary = 1000, .width = 128, .count = 5, .active = active});
    }
  }
}

// Each block processes several tiles.
TEST(TopOfProductOnGpu, MatchTheCpuForLargeVocabularies) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t rows : {1, 30, 64, 256}) {
    for (const std::int64_t vocabulary : {32000, 50304}) {
      expect_like_cpu({.rows = rows, .vocabulary = vocabulary, .width = 512, .count = 5});
    }
  }
  expect_like_cpu({.rows = 1024, .vocabulary = 9001, .count = 5});
}

TEST(TopOfProductOnGpu, MatchTheCpuForAnyNumberOfCandidatesAndAnyWidth) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t rows : {3, 20, 50, 140}) {
    for (std::int64_t count = 1; count <= 16; ++count) {
      expect_like_cpu({.rows = rows, .vocabulary = 1000, .width = 64, .count = count});
    }
    for (const std::int64_t width : {192, 320, 1024}) {
      expect_like_cpu({.rows = rows, .vocabulary = 700, .width = width, .count = 4});
    }
  }
}

TEST(TopOfProductOnGpu, FallBackToSeparateKernels) {
  SKIP_WITHOUT_GPU();
  expect_like_cpu({.rows = 5, .vocabulary = 1000, .width = 64, .count = 17}, false);
  expect_like_cpu({.rows = 5, .vocabulary = 1000, .width = 72, .count = 4}, false);
  expect_like_cpu({.rows = 5, .vocabulary = 6, .width = 64, .count = 6}, false);
  expect_like_cpu({.rows = 1025, .vocabulary = 300, .width = 64, .count = 2}, false);
}

TEST(TopOfProductOnGpu, TiesGoToTheLowerId) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t rows : {4, 40, 70, 129}) {
    // 0: all logits are equal; 1: many are.
    for (const int levels : {0, 1}) {
      for (const std::int64_t count : {1, 6, 13}) {
        expect_like_cpu({.rows = rows, .vocabulary = 1000, .count = count, .levels = levels});
      }
    }
  }
}

TEST(TopOfProductOnGpu, BannedTokensCountInTheSumButAreNotReturned) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t rows : {9, 45, 72, 140}) {
    for (const std::int64_t vocabulary : {37, 1000}) {
      // Tokens that occur in the histories are the most likely ones.
      Inputs in{.rows = rows, .vocabulary = vocabulary, .width = 64, .count = 5};
      for (std::int64_t token = 0; token < 70 && token < vocabulary; token += 7) {
        in.extremes.emplace_back(token, 40.0f + static_cast<float>(token % 3));
      }
      in.extremes.emplace_back(2, 45.0f);  // </s>
      in.extremes.emplace_back(1, 60.0f);  // <s>
      for (const std::int64_t repeats : {0, 1, 2, 7, 8, 9}) {
        in.max_repeats = repeats;
        for (const std::int64_t length : {0, 71, 1000}) {
          in.min_length = length;
          expect_like_cpu(in);
        }
      }
      in.suppressed_token = -1;
      expect_like_cpu(in);
      in.suppressed_token = static_cast<std::int32_t>(vocabulary) - 1;
      in.extremes.emplace_back(vocabulary - 1, 80.0f);
      expect_like_cpu(in);
    }
  }
}

TEST(TopOfProductOnGpu, ImpossibleTokensComeLast) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t rows : {2, 18, 64, 129}) {
    for (const std::int64_t vocabulary : {37, 1000}) {
      Inputs in{.rows = rows, .vocabulary = vocabulary, .count = 4};
      for (std::int64_t token = 0; token < vocabulary; ++token) {
        if (token % 3 != 1) in.extremes.emplace_back(token, -INFINITY);
      }
      expect_like_cpu(in);
      // All tokens but one are impossible.
      in.extremes.clear();
      for (std::int64_t token = 0; token + 1 < vocabulary; ++token) {
        in.extremes.emplace_back(token, -INFINITY);
      }
      expect_like_cpu(in);
    }
  }
}

TEST(TopOfProductOnGpu, PropagatesNaN) {
  SKIP_WITHOUT_GPU();
  CudaContext cuda;
  for (const std::int64_t rows : {3, 20, 60, 130}) {
    for (const std::int64_t every : {1, 2, 300}) {
      for (const float bad : {NAN, INFINITY}) {
        Inputs in{.rows = rows, .vocabulary = 1000, .count = 5, .max_repeats = 8};
        for (std::int64_t token = 0; token < in.vocabulary; token += every) {
          in.extremes.emplace_back(token, bad);
        }
        SCOPED_TRACE(in.description() + ", every " + std::to_string(every));
        const Result found = find(cuda, DType::bf16, in);
        for (const double log_prob : found.log_probs) EXPECT_TRUE(std::isnan(log_prob));
        for (const std::int32_t id : found.ids) EXPECT_TRUE(id >= 0 && id < 1000) << id;
      }
    }
  }
}

}  // namespace
}  // namespace nunchi::testing
