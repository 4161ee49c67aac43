// A normalisation fused with the product that follows it, on the GPU.
#include "nunchi/kernels/norm_product.h"

#include "nunchi/kernels/cuda/product/few_rows_product.h"
#include "tests/kernels/cuda/compare.h"

namespace nunchi::testing {
namespace {

struct Case {
  std::int64_t rows, count, width, outputs;
  kernels::NormKind kind = kernels::NormKind::layer;
  bool branch = true;
  bool bias = true;
};

struct Results {
  Tensor sum, out, mean, rstd, c;
};

template <class T, class C>
Results run_case(auto& ctx, const Case& x, DType dtype) {
  const auto read = [&](const Shape& shape, std::uint64_t seed) {
    return input(ctx, dtype, shape, seed);
  };
  const DType wide = accumulator_type(dtype);
  const Tensor residual = read({x.rows, x.width}, 1), branch = read({x.rows, x.width}, 2),
               gamma = read({x.width}, 3), beta = read({x.width}, 4),
               weight = read({x.outputs, x.width}, 5), bias = read({x.outputs}, 6);
  const Tensor count = from_host(ctx, std::vector<std::int32_t>{std::int32_t(x.count)}, {1});
  const Results r{
      unwritten_tensor(ctx, dtype, {x.rows, x.width}),
      unwritten_tensor(ctx, dtype, {x.rows, x.width}), unwritten_tensor(ctx, wide, {x.rows}),
      unwritten_tensor(ctx, wide, {x.rows}),
      unwritten_tensor(ctx, sizeof(C) == 2 ? DType::bf16 : DType::f32, {x.rows, x.outputs})};
  kernels::run(ctx,
               kernels::NormProduct<T, C>{
                   .norm = {.kind = x.kind,
                            .rows = {.capacity = x.rows, .count = count.data<std::int32_t>()},
                            .width = x.width,
                            .residual = residual.data<T>(),
                            .branch = x.branch ? branch.data<T>() : nullptr,
                            .gamma = gamma.data<T>(),
                            .beta = x.kind == kernels::NormKind::layer ? beta.data<T>() : nullptr,
                            .sum = r.sum.data<T>(),
                            .out = r.out.data<T>(),
                            .mean = r.mean.data<Accumulator<T>>(),
                            .rstd = r.rstd.data<Accumulator<T>>()},
                   .product = {.m = x.rows,
                               .n = x.outputs,
                               .k = x.width,
                               .a = r.out.data<T>(),
                               .b = weight.data<T>(),
                               .transpose_b = true,
                               .c = r.c.data<C>(),
                               .bias = x.bias ? bias.data<T>() : nullptr,
                               .relu = x.bias}});
  return r;
}

// The rows up to the count; the others are meaningless.
std::vector<double> real(const Tensor& tensor, const Case& x) {
  const std::vector<double> all = to_host_f64(tensor);
  return {all.begin(), all.begin() + std::int64_t(all.size()) / x.rows * x.count};
}

void expect_as_on_cpu(const Case& x) {
  CpuContext cpu({.threads = 2});
  CudaContext cuda;
  cuda.arena().poison();
  const Results expected = run_case<float, float>(cpu, x, DType::f32);
  std::vector<Results> results = {run_case<BFloat16, BFloat16>(cuda, x, DType::bf16)};
  // For more rows the library would have to add a bf16 bias to an f32 result, which it does not
  // support.
  if (x.rows <= kernels::kMaxFewRows) {
    results.push_back(run_case<BFloat16, float>(cuda, x, DType::bf16));
  }
  for (const Results& found : results) {
    const auto near = [&](const char* what, const Tensor& a, const Tensor& b, double tolerance) {
      EXPECT_LE(relative_distance(real(a, x), real(b, x)), tolerance)
          << what << ": " << x.rows << " rows, " << x.width << " to " << x.outputs;
    };
    near("out", found.out, expected.out, 1e-2);
    near("c", found.c, expected.c, 1e-2);
    near("rstd", found.rstd, expected.rstd, 1e-2);
    if (x.branch) near("sum", found.sum, expected.sum, 1e-2);
    for (const double value : to_host_f64(found.c)) EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(CudaNormProduct, MatchesTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t width : {256, 512, 1024}) {
    for (const std::int64_t rows : {1, 5, 8, 9, 16}) expect_as_on_cpu({rows, rows, width, 516});
  }
}

TEST(CudaNormProduct, HandlesEveryKindAndRowsPastTheCount) {
  SKIP_WITHOUT_GPU();
  for (const auto kind : {kernels::NormKind::layer, kernels::NormKind::rms}) {
    for (const bool branch : {false, true}) {
      expect_as_on_cpu({8, 8, 512, 1536, kind, branch, false});
      expect_as_on_cpu({13, 10, 512, 64, kind, branch, true});
    }
  }
}

TEST(CudaNormProduct, FallsBackToTwoKernels) {
  SKIP_WITHOUT_GPU();
  expect_as_on_cpu({70, 70, 512, 512});
  expect_as_on_cpu({4, 4, 384, 512});
  expect_as_on_cpu({4, 4, 512, 9000});
}

TEST(CudaNormProduct, HandlesManyRows) {
  SKIP_WITHOUT_GPU();
  for (const auto kind : {kernels::NormKind::layer, kernels::NormKind::rms}) {
    for (const std::int64_t width : {256, 512, 1024}) {
      for (const std::int64_t rows : {17, 40, 64, 130, 256}) {
        expect_as_on_cpu({rows, rows - 3, width, 516, kind, false, true});
      }
    }
  }
  for (const bool branch : {false, true}) {
    expect_as_on_cpu({64, 64, 512, 2048, kernels::NormKind::layer, branch, true});
    expect_as_on_cpu({59, 59, 256, 1540, kernels::NormKind::rms, branch, true});
  }
  expect_as_on_cpu({256, 250, 512, 1536, kernels::NormKind::layer, false, false});
  expect_as_on_cpu({250, 250, 512, 2048, kernels::NormKind::layer, false, true});
}

TEST(CudaNormProduct, ProductMatchesTheNormalisedRows) {
  SKIP_WITHOUT_GPU();
  CudaContext cuda;
  const Case x{11, 11, 512, 1536, kernels::NormKind::layer, true, false};
  const Results found = run_case<BFloat16, float>(cuda, x, DType::bf16);
  const Tensor weight = input(cuda, DType::bf16, {x.outputs, x.width}, 5);
  const Tensor c = Tensor::empty(cuda, DType::f32, {x.rows, x.outputs});
  ASSERT_TRUE(kernels::try_few_rows_product(
      cuda, kernels::Product<BFloat16, float>{.m = x.rows,
                                              .n = x.outputs,
                                              .k = x.width,
                                              .a = found.out.data<BFloat16>(),
                                              .b = weight.data<BFloat16>(),
                                              .transpose_b = true,
                                              .c = c.data<float>()}));
  EXPECT_TRUE(same_bits(to_host<float>(found.c), to_host<float>(c)));
}

}  // namespace
}  // namespace nunchi::testing
