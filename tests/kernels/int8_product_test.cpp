// Products with int8 weights give the bits of the reference on every instruction set, for any
// number of rows and threads.
#include "nunchi/kernels/int8_product.h"

#include <limits>

#include "tests/errors.h"
#include "tests/reference/int8_product.h"
#include "tests/reference/versions.h"

namespace nunchi::testing {
namespace {

using kernels::Int8Product;
using kernels::Product;
using kernels::QuantizeMatrix;

struct Size {
  std::int64_t m, n, k;
};
const std::vector<Size> kSizes = {{1, 1, 1},    {1, 16, 4},    {2, 17, 5},   {3, 130, 37},
                                  {7, 64, 512}, {13, 100, 64}, {6, 33, 130}, {64, 200, 66},
                                  {5, 48, 3},   {129, 70, 20}, {1, 512, 512}};

// A weight [N, K] as int8.
struct Weight {
  Weight(CpuContext& ctx, const float* w, std::int64_t n, std::int64_t k)
      : values(static_cast<std::size_t>(kernels::int8_bytes(n, k)), 77),
        scales(static_cast<std::size_t>(n), -1.0f) {
    kernels::run(
        ctx,
        QuantizeMatrix{
            .n = n, .k = k, .count = n, .w = w, .values = values.data(), .scales = scales.data()});
  }
  kernels::FormedMatrix formed() const {
    return {.form = WeightForm::int8, .data = values.data(), .scales = scales.data()};
  }
  std::vector<std::uint8_t> values;
  std::vector<float> scales;
};

struct Problem {
  explicit Problem(const Size& size)
      : a(random_values<float>(size.m * size.k, 1)),
        w(random_values<float>(size.n * size.k, 2)),
        bias(random_values<float>(size.n, 3)),
        c(random_values<float>(size.m * size.n, 4)),
        residual(random_values<float>(size.m * size.n, 5)),
        size(size) {}
  Product<float> product() {
    return {.m = size.m,
            .n = size.n,
            .k = size.k,
            .a = a.data(),
            .b = w.data(),
            .transpose_b = true,
            .c = c.data()};
  }
  std::vector<float> a, w, bias, c, residual;
  Size size;
};

// Runs the product with the weight quantised, on every instruction set, with and without VNNI.
template <class Check>
void for_every_version(const Product<float>& product, std::vector<float>& c, const Check& check) {
  const std::vector<float> before = c;
  for (const Isa isa : all_isas()) {
    for (const bool vnni : {true, false}) {
      for (const int threads : {1, 3}) {
        SCOPED_TRACE(std::string(name_of(isa)) + (vnni ? " vnni " : " ") + std::to_string(threads));
        CpuContext ctx({.threads = threads, .isa = isa});
        const Weight weight(ctx, product.b, product.n, product.k);
        c = before;
        Int8Product kernel{.p = product, .vnni = vnni};
        kernel.p.b = nullptr;
        kernel.p.formed_b = weight.formed();
        kernels::run(ctx, kernel);
        check();
      }
    }
  }
}

void expect_reference_bits(const Product<float>& product, std::vector<float>& c) {
  const std::vector<float> expected = reference::int8_product(product);
  for_every_version(product, c, [&] { EXPECT_TRUE(same_bits(c, expected)); });
}

TEST(Int8Product, HasTheBitsOfTheReference) {
  for (const Size& size : kSizes) {
    SCOPED_TRACE(std::to_string(size.m) + " x " + std::to_string(size.n) + " x " +
                 std::to_string(size.k));
    Problem x(size);
    expect_reference_bits(x.product(), x.c);
  }
}

TEST(Int8Product, AddsBiasAndResidualAppliesReluAndAccumulates) {
  for (const Size& size : kSizes) {
    SCOPED_TRACE(size.n);
    for (int options = 0; options < 4; ++options) {
      SCOPED_TRACE(options);
      Problem x(size);
      Product<float> product = x.product();
      if (options != 3) product.bias = x.bias.data();
      product.relu = options == 1;
      if (options == 2) product.residual = x.residual.data();
      product.accumulate = options == 3;
      expect_reference_bits(product, x.c);
    }
  }
}

TEST(Int8Product, IsCloseToTheProductInF32) {
  Problem x({.m = 20, .n = 64, .k = 512});
  Product<float> product = x.product();
  std::vector<double> expected;
  double squares = 0;
  for (int i = 0; i < 20; ++i) {
    for (int j = 0; j < 64; ++j) {
      double sum = 0;
      for (int k = 0; k < 512; ++k) sum += double{x.a[i * 512 + k]} * x.w[j * 512 + k];
      expected.push_back(sum);
      squares += sum * sum;
    }
  }
  for_every_version(product, x.c, [&] {
    double errors = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      errors += (x.c[i] - expected[i]) * (x.c[i] - expected[i]);
    }
    EXPECT_LT(std::sqrt(errors / squares), 0.01);
  });
}

TEST(Int8Product, ARowDoesNotDependOnTheOthers) {
  Problem x({.m = 65, .n = 130, .k = 100});
  CpuContext ctx({.threads = 2});
  const Weight weight(ctx, x.w.data(), 130, 100);
  Int8Product all{.p = x.product()};
  all.p.formed_b = weight.formed();
  kernels::run(ctx, all);
  for (const std::int64_t row : {0, 1, 31, 64}) {
    std::vector<float> alone(130);
    Int8Product one = all;
    one.p.m = 1;
    one.p.a = x.a.data() + row * 100;
    one.p.c = alone.data();
    kernels::run(ctx, one);
    EXPECT_TRUE(same_bits(
        alone, std::vector<float>(x.c.begin() + row * 130, x.c.begin() + (row + 1) * 130)));
  }
}

// The largest sums: no intermediate result may saturate.
TEST(Int8Product, TheLargestNumbersAreExact) {
  Problem x({.m = 3, .n = 20, .k = 4096});
  std::fill(x.a.begin(), x.a.end(), 1.0f);
  for (std::size_t i = 0; i < x.w.size(); ++i) x.w[i] = i / 4096 % 2 == 0 ? 2.0f : -2.0f;
  const Product<float> product = x.product();
  const std::vector<float> expected = reference::int8_product(product);
  EXPECT_NEAR(expected[0], 8192.0f, 0.01f);
  for_every_version(product, x.c, [&] { EXPECT_TRUE(same_bits(x.c, expected)); });
}

TEST(Int8Product, RowsOfZerosGiveTheBias) {
  Problem x({.m = 4, .n = 24, .k = 12});
  std::fill(x.a.begin() + 12, x.a.begin() + 24, 0.0f);
  std::fill(x.w.begin(), x.w.begin() + 12, 0.0f);
  Product<float> product = x.product();
  product.bias = x.bias.data();
  for_every_version(product, x.c, [&] {
    for (int j = 0; j < 24; ++j) EXPECT_EQ(x.c[std::size_t(24 + j)], x.bias[std::size_t(j)]);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(x.c[std::size_t(24 * i)], x.bias[0]);
  });
}

TEST(Int8Product, NumbersThatAreNotFiniteReachOnlyTheirRow) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Problem x({.m = 3, .n = 40, .k = 20});
    x.a[25] = bad;
    Product<float> product = x.product();
    product.relu = true;
    for_every_version(product, x.c, [&] {
      for (int j = 0; j < 40; ++j) {
        EXPECT_TRUE(std::isfinite(x.c[std::size_t(j)]));
        EXPECT_TRUE(std::isnan(x.c[std::size_t(40 + j)]));
        EXPECT_TRUE(std::isfinite(x.c[std::size_t(80 + j)]));
      }
    });
  }
}

TEST(Int8Product, AWeightIsTheSameWhenQuantisedInParts) {
  const std::int64_t n = 50, k = 30;
  const std::vector<float> w = random_values<float>(n * k, 1);
  CpuContext ctx;
  const Weight whole(ctx, w.data(), n, k);
  Weight parts(ctx, w.data(), n, k);
  std::fill(parts.values.begin(), parts.values.end(), std::uint8_t{3});
  for (const auto& [first, count] : {std::pair{0, 32}, std::pair{32, 16}, std::pair{48, 2}}) {
    kernels::run(ctx, QuantizeMatrix{.n = n,
                                     .k = k,
                                     .first = first,
                                     .count = count,
                                     .w = w.data() + first * k,
                                     .values = parts.values.data(),
                                     .scales = parts.scales.data()});
  }
  EXPECT_EQ(parts.values, whole.values);
  EXPECT_EQ(parts.scales, whole.scales);
}

TEST(Int8Product, OtherProductsAreRefused) {
  Problem x({.m = 4, .n = 4, .k = 4});
  CpuContext ctx;
  const Weight weight(ctx, x.w.data(), 4, 4);
  const auto refused = [&](auto change) {
    Int8Product kernel{.p = x.product()};
    kernel.p.formed_b = weight.formed();
    change(kernel.p);
    return error_of([&] { kernels::run(ctx, kernel); });
  };
  EXPECT_NE(refused([](auto& p) { p.transpose_b = false; }).find("x · Wᵀ"), std::string::npos);
  EXPECT_NE(refused([](auto& p) { p.k = 65537; }).find("65,536"), std::string::npos);
  EXPECT_NE(refused([](auto& p) { p.k = 0; }).find("65,536"), std::string::npos);
}

}  // namespace
}  // namespace nunchi::testing
