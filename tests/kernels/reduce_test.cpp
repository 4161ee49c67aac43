#include "nunchi/kernels/reduce.h"

#include "tests/reference/versions.h"

namespace nunchi::testing {
namespace {

using kernels::ColumnSum;
using kernels::Sum;

const std::vector<std::int64_t> kCounts = {0,    1,    3,    7,        8,      33,
                                           4095, 4096, 4097, 5 * 4096, 100003, 4096 * 1024 + 5};

template <class T>
double sum_of(CpuContext& ctx, const std::vector<T>& x, std::int64_t count, bool squares) {
  double sum = NAN;
  kernels::run(ctx, Sum<T>{.count = count, .squares = squares, .x = x.data(), .out = &sum});
  return sum;
}

TEST(Sum, SumsInF64) {
  const auto f32 = random_values<float>(kCounts.back(), 1);
  const auto f64 = random_values<double>(kCounts.back(), 2);
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    const std::vector<T>* values = nullptr;
    if constexpr (sizeof(T) == 4) {
      values = &f32;
    } else {
      values = &f64;
    }
    for (const std::int64_t count : kCounts) {
      long double sum = 0, squares = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        const long double x = (*values)[i];
        sum += x;
        squares += x * x;
      }
      const double tolerance = 1e-14 * static_cast<double>(count);
      EXPECT_NEAR(sum_of(ctx, *values, count, false), static_cast<double>(sum), tolerance) << count;
      EXPECT_NEAR(sum_of(ctx, *values, count, true), static_cast<double>(squares), tolerance)
          << count;
    }
  });
}

TEST(Sum, NumberOfThreadsDoesNotChangeBits) {
  const auto f32 = random_values<float>(300007, 1);
  const auto f64 = random_values<double>(300007, 2);
  expect_same_bits_for_any_threads([&]<class T>(CpuContext& ctx) {
    if constexpr (sizeof(T) == 4) {
      return std::vector<double>{sum_of(ctx, f32, 300007, false), sum_of(ctx, f32, 300007, true)};
    } else {
      return std::vector<double>{sum_of(ctx, f64, 300007, false), sum_of(ctx, f64, 300007, true)};
    }
  });
}

// Squares of f32 are exact in f64, so a fused multiply-add gives the same result.
TEST(Sum, InstructionSetsDoNotChangeTheOrder) {
  const auto f32 = random_values<float>(100003, 1);
  const auto f64 = random_values<double>(100003, 2);
  CpuContext portable({.threads = 2, .isa = Isa::portable});
  for (const Isa isa : all_isas()) {
    CpuContext ctx({.threads = 2, .isa = isa});
    for (const bool squares : {false, true}) {
      EXPECT_EQ(sum_of(ctx, f32, 100003, squares), sum_of(portable, f32, 100003, squares));
    }
    EXPECT_EQ(sum_of(ctx, f64, 100003, false), sum_of(portable, f64, 100003, false));
  }
}

TEST(Sum, PropagatesNaNAndInfinity) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    std::vector<T> x(5000, T(1));
    x[4500] = static_cast<T>(NAN);
    EXPECT_TRUE(std::isnan(sum_of(ctx, x, 5000, true)));
    x[4500] = static_cast<T>(INFINITY);
    EXPECT_TRUE(std::isinf(sum_of(ctx, x, 5000, true)));
  });
}

template <class T>
std::vector<T> column_sums(CpuContext& ctx, std::int64_t rows, std::int64_t width) {
  const auto x = random_values<T>(rows * width, 1);
  auto out = random_values<T>(width, 2);
  kernels::run(ctx, ColumnSum<T>{.rows = rows, .width = width, .x = x.data(), .out = out.data()});
  return out;
}

TEST(ColumnSum, SumsEveryRow) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const std::int64_t width : kWidths) {
      for (const std::int64_t rows : {0, 1, 31, 32, 33, 127}) {
        const auto x = random_values<T>(rows * width, 1);
        const auto initial = random_values<T>(width, 2);
        std::vector<double> expected(initial.begin(), initial.end());
        for (std::int64_t i = 0; i < rows * width; ++i) expected[i % width] += x[i];
        expect_close("sums", column_sums<T>(ctx, rows, width), expected);
      }
    }
  });
}

TEST(ColumnSum, NumberOfThreadsDoesNotChangeBits) {
  expect_same_bits_for_any_threads(
      []<class T>(CpuContext& ctx) { return column_sums<T>(ctx, 127, 300); });
}

TEST(ColumnSum, InstructionSetsDoNotChangeTheOrder) {
  CpuContext portable({.threads = 2, .isa = Isa::portable});
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    EXPECT_TRUE(same_bits(column_sums<T>(ctx, 127, 300), column_sums<T>(portable, 127, 300)));
  });
}

}  // namespace
}  // namespace nunchi::testing
