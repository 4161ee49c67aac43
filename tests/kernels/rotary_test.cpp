#include "nunchi/kernels/rotary.h"

#include "tests/reference/rotary.h"
#include "tests/reference/versions.h"

namespace nunchi::testing {
namespace {

using kernels::Rotary;

// Heads in wider rows, whose last columns are not part of a head.
template <class T>
struct Problem {
  Problem(int heads, std::int64_t width)
      : batch(kLengths, 9),
        stride(heads * width + 5),
        x(random_values<T>(batch.capacity * stride, 1)),
        out(unwritten<T>(batch.capacity * stride)) {
    for (const double value : reference::rotary_table(batch.longest, width, 10000)) {
      table.push_back(static_cast<T>(value));
    }
    kernel = {.rows = batch.rows(),
              .heads = heads,
              .head_width = width,
              .table = table.data(),
              .x = x.data(),
              .out = out.data(),
              .x_stride = stride,
              .out_stride = stride};
  }
  // The heads of the rows up to the count.
  std::vector<T> heads_of(const std::vector<T>& matrix) const {
    std::vector<T> heads;
    for (std::int64_t r = 0; r < batch.count; ++r) {
      const auto row = subrange(matrix, r * stride, kernel.heads * kernel.head_width);
      heads.insert(heads.end(), row.begin(), row.end());
    }
    return heads;
  }

  Batch batch;
  std::int64_t stride;
  std::vector<T> x, out, table;
  Rotary<T> kernel;
};

TEST(Rotary, RotatesPairsOfColumns) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const std::int64_t width : {2, 6, 20, 64, 130}) {
      for (const bool inverse : {false, true}) {
        Problem<T> p(3, width);
        p.kernel.inverse = inverse;
        kernels::run(ctx, p.kernel);
        expect_close("out", p.heads_of(p.out), reference::rotary(p.kernel, p.batch.count));
        for (std::int64_t r = 0; r < p.batch.capacity; ++r) {
          const std::int64_t first = r < p.batch.count ? 3 * width : 0;
          for (std::int64_t i = first; i < p.stride; ++i) {
            ASSERT_TRUE(std::isnan(p.out[static_cast<std::size_t>(r * p.stride + i)]))
                << "row " << r << " wrote outside its heads";
          }
        }
      }
    }
  });
}

TEST(Rotary, InverseInPlaceRestoresTheInput) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    Problem<T> p(2, 20);
    const std::vector<T> original = p.x;
    const std::vector<double> rotated = reference::rotary(p.kernel, p.batch.count);
    p.kernel.out = p.x.data();
    kernels::run(ctx, p.kernel);
    expect_close("rotated", p.heads_of(p.x), rotated);
    p.kernel.inverse = true;
    kernels::run(ctx, p.kernel);
    expect_close("restored", p.x, {original.begin(), original.end()});
  });
}

TEST(Rotary, DotProductsDependOnlyOnTheDistance) {
  CpuContext ctx({.threads = 1});
  constexpr std::int64_t kWidth = 16;
  Problem<double> p(1, kWidth);
  // The same vector is rotated at every position; product(query) is its dot product with the vector
  // three positions earlier.
  for (std::int64_t r = 0; r < p.batch.count; ++r) {
    std::copy_n(p.x.begin(), kWidth, p.x.begin() + r * p.stride);
  }
  kernels::run(ctx, p.kernel);
  const std::int64_t first = p.batch.offsets[2];
  const auto product = [&](std::int64_t query) {
    double sum = 0;
    for (std::int64_t i = 0; i < kWidth; ++i) {
      sum += p.out[static_cast<std::size_t>((first + query) * p.stride + i)] *
             p.out[static_cast<std::size_t>((first + query - 3) * p.stride + i)];
    }
    return sum;
  };
  for (std::int64_t query = 4; query < 127; ++query) {
    EXPECT_NEAR(product(query), product(3), 1e-12);
  }
  double squares = 0;
  for (std::int64_t i = 0; i < kWidth; ++i) squares += p.x[i] * p.x[i];
  EXPECT_GT(std::fabs(product(3) - squares), 1e-3) << "the vectors were not rotated";
}

TEST(Rotary, NumberOfThreadsDoesNotChangeBits) {
  expect_same_bits_for_any_threads([]<class T>(CpuContext& ctx) {
    Problem<T> p(3, 36);
    kernels::run(ctx, p.kernel);
    return p.heads_of(p.out);
  });
}

}  // namespace
}  // namespace nunchi::testing
