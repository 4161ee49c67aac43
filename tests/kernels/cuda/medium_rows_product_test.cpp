// Products of a few hundred rows on the GPU.
#include "nunchi/kernels/cuda/product/few_rows_product.h"
#include "tests/kernels/cuda/compare.h"

namespace nunchi::testing {
namespace {

struct Case {
  std::int64_t rows, outputs, width;
  bool bias = true, relu = false, residual = false;
};

std::string describe(const Case& x) {
  return std::to_string(x.rows) + " rows, " + std::to_string(x.width) + " to " +
         std::to_string(x.outputs) + (x.bias ? ", bias" : "") + (x.relu ? ", relu" : "") +
         (x.residual ? ", residual" : "");
}

template <class T>
kernels::Product<T> product_of(const Case& x, const Tensor& a, const Tensor& b, const Tensor& bias,
                               const Tensor& residual, const Tensor& c) {
  return {.m = x.rows,
          .n = x.outputs,
          .k = x.width,
          .a = a.data<T>(),
          .b = b.data<T>(),
          .transpose_b = true,
          .c = c.data<T>(),
          .bias = x.bias ? bias.data<T>() : nullptr,
          .relu = x.relu,
          .residual = x.residual ? residual.data<T>() : nullptr};
}

std::vector<double> result_of(ContextBase& context, const Case& x, DType dtype, bool& launched) {
  const Tensor a = input(context, dtype, {x.rows, x.width}, 1),
               b = input(context, dtype, {x.outputs, x.width}, 2),
               bias = input(context, dtype, {x.outputs}, 3),
               residual = input(context, dtype, {x.rows, x.outputs}, 4, 20),
               c = unwritten_tensor(context, dtype, {x.rows, x.outputs});
  if (dtype == DType::bf16) {
    launched = kernels::try_medium_rows_product(static_cast<CudaContext&>(context),
                                                product_of<BFloat16>(x, a, b, bias, residual, c));
  } else {
    kernels::run(static_cast<CpuContext&>(context), product_of<float>(x, a, b, bias, residual, c));
  }
  return to_host_f64(c);
}

void expect_as_on_cpu(const Case& x, bool expect_launched = true) {
  SCOPED_TRACE(describe(x));
  CpuContext cpu({.threads = 2});
  CudaContext cuda;
  cuda.arena().poison();
  bool launched = false;
  const std::vector<double> expected = result_of(cpu, x, DType::f32, launched),
                            found = result_of(cuda, x, DType::bf16, launched);
  ASSERT_EQ(launched, expect_launched);
  if (launched) {
    EXPECT_LE(relative_distance(found, expected), 1e-2);
  }
}

TEST(CudaMediumRowsProduct, MatchesTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t rows : {65, 72, 128, 200, 256}) {
    expect_as_on_cpu({rows, 512, 512});
    expect_as_on_cpu({rows, 1536, 512, true, true});
    expect_as_on_cpu({rows, 512, 2048, true, false, true});
  }
  expect_as_on_cpu({256, 2048, 512, false, true});
}

TEST(CudaMediumRowsProduct, MatchesTheCpuForEveryNumberOfStages) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t width : {128, 256, 384, 512, 640, 768, 896, 1024, 1152}) {
    expect_as_on_cpu({33, 100, width});
    expect_as_on_cpu({190, 292, width, false, false, true});
    expect_as_on_cpu({300, 644, width, true, false, true});
  }
}

TEST(CudaMediumRowsProduct, RefusesUnsuitableProducts) {
  SKIP_WITHOUT_GPU();
  expect_as_on_cpu({100, 512, 320}, false);
  expect_as_on_cpu({100, 510, 512}, false);
  expect_as_on_cpu({1000, 4096, 128}, false);
}

// For few, medium and many rows, which different kernels compute.
TEST(CudaProduct, AddsTheResidual) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t rows : {1, 20, 64, 150, 1500}) {
    const Case x{rows, 516, 512, true, false, true};
    SCOPED_TRACE(describe(x));
    expect_like_cpu([&](ContextBase& context, DType dtype) {
      const Tensor a = input(context, dtype, {x.rows, x.width}, 1),
                   b = input(context, dtype, {x.outputs, x.width}, 2),
                   bias = input(context, dtype, {x.outputs}, 3),
                   residual = input(context, dtype, {x.rows, x.outputs}, 4, 20),
                   c = unwritten_tensor(context, dtype, {x.rows, x.outputs});
      dispatch(a, [&]<class T>(auto& ctx) {
        kernels::run(ctx, product_of<T>(x, a, b, bias, residual, c));
      });
      return std::vector{output("c", c)};
    });
  }
}

}  // namespace
}  // namespace nunchi::testing
