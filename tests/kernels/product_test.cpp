#include "nunchi/kernels/product.h"

#include <tuple>

#include "tests/reference/product.h"
#include "tests/reference/versions.h"

namespace nunchi::testing {
namespace {

using kernels::PackMatrix;
using kernels::Product;

struct Size {
  std::int64_t m, n, k;
};
const std::vector<Size> kSizes = {{1, 1, 1},   {1, 37, 20},    {31, 3, 64},   {33, 130, 37},
                                  {32, 64, 3}, {127, 20, 130}, {64, 130, 64}, {5, 33, 1}};

// Calls f.operator()<T>(context) for both types, with work on one thread and on two.
template <class F>
void for_every_product(F&& f) {
  for (const bool split : {false, true}) {
    SCOPED_TRACE(split);
    CpuContext context({.threads = 2, .split_small_work = split});
    f.template operator()<float>(context);
    f.template operator()<double>(context);
  }
}

template <class T>
struct Matrices {
  explicit Matrices(const Size& size)
      : a(random_values<T>(size.m * size.k, 1)),
        b(random_values<T>(size.k * size.n, 2)),
        bias(random_values<T>(size.n, 3)),
        c(random_values<T>(size.m * size.n, 4)),
        size(size) {}
  // c = a · b; tests add further options.
  Product<T> product() {
    return {.m = size.m, .n = size.n, .k = size.k, .a = a.data(), .b = b.data(), .c = c.data()};
  }
  std::vector<T> a, b, bias, c;
  Size size;
};

template <class T>
void check(CpuContext& ctx, const Product<T>& p, const std::vector<T>& c) {
  const std::vector<double> expected = reference::product(p);
  kernels::run(ctx, p);
  expect_close("c", c, expected, kTolerance<T> * std::sqrt(static_cast<double>(p.k)));
}

TEST(Product, MatchesTheReferenceForEveryTransposition) {
  for_every_product([]<class T>(CpuContext& ctx) {
    for (const Size& size : kSizes) {
      for (const bool transpose_a : {false, true}) {
        for (const bool transpose_b : {false, true}) {
          Matrices<T> x(size);
          x.c = unwritten<T>(size.m * size.n);
          check<T>(ctx,
                   {.m = size.m,
                    .n = size.n,
                    .k = size.k,
                    .a = x.a.data(),
                    .transpose_a = transpose_a,
                    .b = x.b.data(),
                    .transpose_b = transpose_b,
                    .c = x.c.data()},
                   x.c);
        }
      }
    }
  });
}

TEST(Product, AccumulatesIntoTheResult) {
  for_every_product([]<class T>(CpuContext& ctx) {
    for (const Size& size : kSizes) {
      for (const bool transposed : {false, true}) {
        Matrices<T> x(size);
        check<T>(ctx,
                 {.m = size.m,
                  .n = size.n,
                  .k = size.k,
                  .a = x.a.data(),
                  .transpose_a = transposed,
                  .b = x.b.data(),
                  .c = x.c.data(),
                  .accumulate = true},
                 x.c);
      }
    }
  });
}

TEST(Product, AddsTheBiasAndAppliesRelu) {
  for_every_product([]<class T>(CpuContext& ctx) {
    for (const Size& size : kSizes) {
      for (const auto& [bias, relu] : {std::pair{true, false}, {false, true}, {true, true}}) {
        Matrices<T> x(size);
        x.c = unwritten<T>(size.m * size.n);
        Product<T> product = x.product();
        product.bias = bias ? x.bias.data() : nullptr;
        product.relu = relu;
        check<T>(ctx, product, x.c);
      }
    }
  });
}

TEST(Product, AddsTheResidualAfterTheBias) {
  for_every_product([]<class T>(CpuContext& ctx) {
    for (const Size& size : kSizes) {
      for (const bool bias : {false, true}) {
        Matrices<T> x(size);
        const std::vector<T> residual = x.c;
        x.c = unwritten<T>(size.m * size.n);
        Product<T> product = x.product();
        product.bias = bias ? x.bias.data() : nullptr;
        product.residual = residual.data();
        check<T>(ctx, product, x.c);
      }
    }
  });
}

TEST(Product, RefusesContradictoryOptions) {
  for_every_product([]<class T>(CpuContext& ctx) {
    const Size size{4, 8, 3};
    Matrices<T> x(size);
    const std::vector<T> residual = x.c;
    const Product<T> plain = x.product();
    const auto refused = [&](auto&& change) {
      Product<T> product = plain;
      change(product);
      EXPECT_THROW(kernels::run(ctx, product), Error);
    };
    refused([&](Product<T>& p) { p.relu = true, p.residual = residual.data(); });
    refused([&](Product<T>& p) { p.accumulate = true, p.relu = true; });
    refused([&](Product<T>& p) { p.accumulate = true, p.bias = x.bias.data(); });
    refused([&](Product<T>& p) { p.accumulate = true, p.residual = residual.data(); });
    refused([&](Product<T>& p) { p.residual = p.c; });
    EXPECT_EQ(x.c, residual);  // nothing was written
  });
}

TEST(Product, PackedMatrixServesAnyNumberOfRows) {
  CpuContext ctx({.threads = 2});
  for (const Size& size : {Size{0, 37, 20}, {0, 130, 64}, {0, 64, 130}, {0, 1, 3}}) {
    for (const bool transpose_b : {false, true}) {
      const auto b = random_values<float>(size.k * size.n, 2);
      const PackMatrix<float> pack{
          .n = size.n, .k = size.k, .b = b.data(), .transpose_b = transpose_b};
      const std::int64_t elements = packed_elements(ctx, pack);
      if (elements == 0) GTEST_SKIP() << kernels::product_library() << " does not pack matrices";
      auto packed = unwritten<float>(elements);
      PackMatrix<float> packing = pack;
      packing.packed = packed.data();
      kernels::run(ctx, packing);
      for (const std::int64_t m : {1, 2, 31, 64, 127}) {
        for (const bool fused : {false, true}) {
          Matrices<float> x({m, size.n, size.k});
          check<float>(ctx,
                       {.m = m,
                        .n = size.n,
                        .k = size.k,
                        .a = x.a.data(),
                        .b = b.data(),
                        .transpose_b = transpose_b,
                        .formed_b = {WeightForm::packed, packed.data()},
                        .c = x.c.data(),
                        .bias = fused ? x.bias.data() : nullptr,
                        .relu = fused},
                       x.c);
        }
      }
    }
  }
}

TEST(Product, F64IsNotPacked) {
  CpuContext ctx({.threads = 1});
  const std::vector<double> b(6);
  EXPECT_EQ(packed_elements(ctx, PackMatrix<double>{.n = 2, .k = 3, .b = b.data()}), 0);
}

// a · b; with `pack`, b is packed where the library can do that.
template <class T>
std::vector<T> product_of(CpuContext& ctx, const Size& size, const std::vector<T>& a,
                          const std::vector<T>& b, bool pack) {
  std::vector<T> c(static_cast<std::size_t>(size.m * size.n)), packed;
  if (pack) {
    PackMatrix<T> packing{.n = size.n, .k = size.k, .b = b.data()};
    packed.resize(static_cast<std::size_t>(packed_elements(ctx, packing)));
    packing.packed = packed.data();
    kernels::run(ctx, packing);
  }
  kernels::run(
      ctx, Product<T>{.m = size.m,
                      .n = size.n,
                      .k = size.k,
                      .a = a.data(),
                      .b = b.data(),
                      .formed_b = {WeightForm::packed, packed.empty() ? nullptr : packed.data()},
                      .c = c.data()});
  return c;
}

TEST(Product, RowBitsDoNotDependOnTheNumberOfRows) {
  bool f32_skipped = false;
  for_every_product([&]<class T>(CpuContext& ctx) {
    if (sizeof(T) == 4 && !kernels::rows_are_independent()) {
      f32_skipped = true;
      return;
    }
    const std::int64_t n = 130, k = 200;
    const auto a = random_values<T>(127 * k, 1), b = random_values<T>(k * n, 2);
    for (const bool pack : {false, true}) {
      const std::vector<T> all_rows = product_of<T>(ctx, {127, n, k}, a, b, pack);
      for (const std::int64_t m : {1, 2, 7, 32, 64}) {
        for (const std::int64_t first : {std::int64_t{0}, 127 - m}) {
          const std::vector<T> few_rows =
              product_of<T>(ctx, {m, n, k}, subrange(a, first * k, m * k), b, pack);
          EXPECT_TRUE(same_bits(few_rows, subrange(all_rows, first * n, m * n)))
              << m << " rows from " << first;
        }
      }
    }
  });
  if (f32_skipped) GTEST_SKIP() << "f32: the number of rows may change the bits of a row here";
}

TEST(Product, ProductOfNoRowsWritesNothing) {
  for_every_product([]<class T>(CpuContext& ctx) {
    const std::vector<T> b = random_values<T>(6, 1);
    T c = 5;
    kernels::run(ctx, Product<T>{.m = 0, .n = 2, .k = 3, .b = b.data(), .c = &c});
    EXPECT_EQ(c, T(5));
  });
}

// On busy cores these products take fewer threads (kernels/cpu/product_threads.h).
TEST(Product, BitsOfSmallProductsDoNotDependOnTheThreads) {
  if (!kernels::rows_are_independent())
    GTEST_SKIP() << "GEMM results depend on the number of rows here";
  CpuContext one({.threads = 1});
  for (const int threads : {2, 4}) {
    CpuContext more({.threads = threads, .split_small_work = true});
    for (const std::int64_t m : {1, 37, 128, 512}) {
      for (const std::int64_t n : {37, 64, 384}) {
        for (const std::int64_t k : {64, 512, 1024}) {
          for (const bool transpose_a : {false, true}) {
            const auto product_of = [&](CpuContext& ctx) {
              Matrices<float> matrices({m, n, k});
              Product<float> p = matrices.product();
              p.transpose_a = p.accumulate = transpose_a;
              kernels::run(ctx, p);
              return matrices.c;
            };
            EXPECT_TRUE(same_bits(product_of(one), product_of(more)))
                << m << " x " << n << " x " << k << ", " << threads << " threads";
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace nunchi::testing
