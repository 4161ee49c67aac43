#include "nunchi/kernels/memory.h"

#include <bit>
#include <limits>
#include <numeric>

#include "nunchi/tensor/dtype.h"
#include "tests/reference/versions.h"

namespace nunchi::testing {
namespace {

using kernels::AddInto;
using kernels::Convert;
using kernels::CopyBytes;
using kernels::Fill;
using kernels::RandomFill;
using kernels::Scale;

// More than the grain of one thread, and not a multiple of any vector width.
constexpr std::int64_t kMany = 100003;

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(BFloat16(1.0f).bits, 0x3F80);
  EXPECT_EQ(BFloat16(-2.0f).bits, 0xC000);
  EXPECT_EQ(BFloat16(from_bits(0x3F807FFF)).bits, 0x3F80);  // just below the middle
  EXPECT_EQ(BFloat16(from_bits(0x3F808000)).bits, 0x3F80);  // the middle: to even, down
  EXPECT_EQ(BFloat16(from_bits(0x3F808001)).bits, 0x3F81);  // just above
  EXPECT_EQ(BFloat16(from_bits(0x3F818000)).bits, 0x3F82);  // the middle: to even, up
  EXPECT_EQ(BFloat16(from_bits(0x3FFFFFFF)).bits, 0x4000);  // into the next power of two
}

TEST(BFloat16, KeepsZerosInfinitiesAndNaNs) {
  EXPECT_EQ(BFloat16(0.0f).bits, 0x0000);
  EXPECT_EQ(BFloat16(-0.0f).bits, 0x8000);
  EXPECT_EQ(BFloat16(INFINITY).bits, 0x7F80);
  EXPECT_EQ(BFloat16(-INFINITY).bits, 0xFF80);
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7F80);  // nearer to infinity
  EXPECT_EQ(BFloat16(from_bits(1)).bits, 0x0000);                       // the smallest number
  for (const std::uint32_t nan :
       {0x7F800001u, 0x7FC00000u, 0xFF800001u, 0x7FFFFFFFu, 0xFFFFFFFFu}) {
    EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(from_bits(nan))))) << nan;
  }
}

TEST(BFloat16, RoundTripThroughF32KeepsEveryNumber) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = from_bits(bits << 16);
    if (std::isnan(value)) continue;
    ASSERT_EQ(BFloat16(value).bits, bits);
  }
}

TEST(Convert, ConvertsBothWays) {
  for (const Isa isa : all_isas()) {
    CpuContext ctx({.threads = 2, .isa = isa});
    const auto values = random_values<double>(kMany, 1, 100);
    std::vector<float> f32(kMany), back(kMany);
    std::vector<double> f64(kMany), wide(kMany);
    std::vector<BFloat16> bf16(kMany);
    kernels::run(ctx, Convert<double, float>{kMany, values.data(), f32.data()});
    kernels::run(ctx, Convert<float, double>{kMany, f32.data(), f64.data()});
    kernels::run(ctx, Convert<float, BFloat16>{kMany, f32.data(), bf16.data()});
    kernels::run(ctx, Convert<BFloat16, float>{kMany, bf16.data(), back.data()});
    kernels::run(ctx, Convert<BFloat16, double>{kMany, bf16.data(), wide.data()});
    for (std::size_t i = 0; i < kMany; ++i) {
      ASSERT_EQ(f32[i], static_cast<float>(values[i]));
      ASSERT_EQ(f64[i], static_cast<double>(f32[i]));
      ASSERT_EQ(bf16[i].bits, BFloat16(f32[i]).bits);
      ASSERT_EQ(back[i], static_cast<float>(bf16[i]));
      ASSERT_EQ(wide[i], static_cast<double>(back[i]));
      ASSERT_LE(std::fabs(back[i] - f32[i]), std::fabs(f32[i]) / 256);
    }
  }
}

TEST(Convert, RoundsSpecialNumbersAsBFloat16Does) {
  for (const Isa isa : all_isas()) {
    CpuContext ctx({.threads = 2, .isa = isa});
    std::vector<float> special;
    for (std::uint32_t upper = 0; upper < 0x10000; upper += 0x7F) {
      for (const std::uint32_t lower : {0x0000u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
        special.push_back(from_bits(upper << 16 | lower));
      }
    }
    std::vector<BFloat16> bf16(special.size());
    kernels::run(ctx, Convert<float, BFloat16>{static_cast<std::int64_t>(special.size()),
                                               special.data(), bf16.data()});
    for (std::size_t i = 0; i < special.size(); ++i) {
      ASSERT_EQ(bf16[i].bits, BFloat16(special[i]).bits) << special[i];
    }
  }
}

TEST(Fill, SetsEveryElementAndNoOther) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{37}, kMany}) {
      std::vector<T> out(static_cast<std::size_t>(count + 1), T(5));
      kernels::run(ctx, Fill<T>{.count = count, .value = T(-2.5), .out = out.data()});
      for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(out[i], T(-2.5));
      ASSERT_EQ(out.back(), T(5));
    }
    std::vector<std::int32_t> numbers(33, 1);
    kernels::run(ctx, Fill<std::int32_t>{.count = 32, .value = -7, .out = numbers.data()});
    EXPECT_EQ(std::accumulate(numbers.begin(), numbers.end(), 0), 32 * -7 + 1);
  });
}

TEST(CopyBytes, CopiesInEveryDirection) {
  using Direction = CopyBytes::Direction;
  CpuContext ctx({.threads = 2});
  const auto from = random_values<float>(1001, 1);
  for (const Direction direction : {Direction::to_device, Direction::to_host, Direction::within}) {
    std::vector<float> to(1001);
    kernels::run(ctx, CopyBytes{direction, 1001 * sizeof(float), from.data(), to.data()});
    EXPECT_TRUE(same_bits(from, to));
  }
  kernels::run(ctx, CopyBytes{.bytes = 0});
}

TEST(AddInto, AddsStridedRowsAndKeepsTheGaps) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const std::int64_t width : kWidths) {
      for (const std::int64_t rows : {1, 33, 127}) {
        const std::int64_t x_stride = width + 5, out_stride = width + 3;
        const auto x = random_values<T>((rows - 1) * x_stride + width, 1);
        auto out = random_values<T>((rows - 1) * out_stride + width, 2);
        std::vector<double> expected(out.begin(), out.end());
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t i = 0; i < width; ++i) {
            expected[r * out_stride + i] += x[r * x_stride + i];
          }
        }
        kernels::run(ctx, AddInto<T>{.rows = rows,
                                     .width = width,
                                     .x = x.data(),
                                     .x_stride = x_stride,
                                     .out = out.data(),
                                     .out_stride = out_stride});
        expect_close("out", out, expected);
      }
    }
  });
}

TEST(Scale, MultipliesEachElement) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const std::int64_t count : {std::int64_t{0}, std::int64_t{5}, kMany}) {
      const auto x = random_values<T>(count, 1);
      auto out = unwritten<T>(count);
      kernels::run(ctx, Scale<T>{.count = count, .factor = -0.3, .x = x.data(), .out = out.data()});
      for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(out[i], x[i] * static_cast<T>(-0.3));
    }
  });
}

TEST(RandomFill, EveryElementDependsOnItsIndexOnly) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    using Distribution = typename RandomFill<T>::Distribution;
    const RandomKey key{.seed = 5, .step = 6};
    for (const Distribution distribution : {Distribution::uniform, Distribution::normal}) {
      std::vector<T> out(5000), start(37);
      RandomFill<T> fill{.distribution = distribution,
                         .scale = 0.25,
                         .key = key,
                         .tensor_id = 3,
                         .count = 5000,
                         .out = out.data()};
      kernels::run(ctx, fill);
      std::vector<double> expected;
      for (std::uint32_t i = 0; i < 5000; ++i) {
        const philox::Words w = philox::bits({i, 0, 0, 3}, philox::key_of(key));
        const double u = w[0] * 0x1p-32 + (w[1] >> 11) * 0x1p-53;
        const double v = w[2] * 0x1p-32 + (w[3] >> 11) * 0x1p-53;
        const double normal =
            std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * 3.14159265358979323846 * v);
        expected.push_back(0.25 * (distribution == Distribution::uniform ? 2 * u - 1 : normal));
      }
      expect_close("out", out, expected);
      fill.count = 37;
      fill.out = start.data();
      kernels::run(ctx, fill);
      EXPECT_TRUE(same_bits(start, subrange(out, 0, 37)));
    }
  });
}

TEST(RandomFill, HasTheRequestedMoments) {
  CpuContext ctx({.threads = 2});
  using Distribution = RandomFill<float>::Distribution;
  for (const Distribution distribution : {Distribution::uniform, Distribution::normal}) {
    const std::int64_t count = 400000;
    std::vector<float> out(static_cast<std::size_t>(count));
    kernels::run(ctx, RandomFill<float>{.distribution = distribution,
                                        .scale = 2,
                                        .key = {.seed = 1},
                                        .count = count,
                                        .out = out.data()});
    double mean = 0, square = 0, largest = 0;
    for (const double x : out) {
      mean += x / count;
      square += x * x / count;
      largest = std::max(largest, std::fabs(x));
    }
    const bool uniform = distribution == Distribution::uniform;
    EXPECT_NEAR(mean, 0, 0.015);
    EXPECT_NEAR(square, uniform ? 4.0 / 3 : 4.0, 0.04);
    EXPECT_TRUE(uniform ? largest <= 2 : largest > 6 && largest < 14) << largest;
  }
}

TEST(RandomFill, NumberOfThreadsDoesNotChangeBits) {
  expect_same_bits_for_any_threads([]<class T>(CpuContext& ctx) {
    std::vector<T> out(5000);
    kernels::run(ctx, RandomFill<T>{.distribution = RandomFill<T>::Distribution::normal,
                                    .key = {.seed = 1},
                                    .count = 5000,
                                    .out = out.data()});
    return out;
  });
}

}  // namespace
}  // namespace nunchi::testing
