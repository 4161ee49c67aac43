// Products of bf16 matrices with f32 results, on the GPU.
#include "nunchi/kernels/product.h"

#include "nunchi/kernels/memory.h"
#include "tests/kernels/cuda/compare.h"

namespace nunchi::testing {
namespace {

using kernels::Product;

struct Case {
  std::int64_t rows, outputs, width;
  bool bias = false, relu = false, residual = false;
};

template <class T>
std::vector<double> result_of(auto& context, const Case& x) {
  constexpr DType kType = sizeof(T) == 2 ? DType::bf16 : DType::f32;
  const Tensor a = input(context, kType, {x.rows, x.width}, 1),
               b = input(context, kType, {x.outputs, x.width}, 2),
               bias = input(context, kType, {x.outputs}, 3, 10),
               residual = input(context, kType, {x.rows, x.outputs}, 4, 20),
               c = unwritten_tensor(context, DType::f32, {x.rows, x.outputs});
  kernels::run(context, Product<T, float>{.m = x.rows,
                                          .n = x.outputs,
                                          .k = x.width,
                                          .a = a.data<T>(),
                                          .b = b.data<T>(),
                                          .transpose_b = true,
                                          .c = c.data<float>(),
                                          .bias = x.bias ? bias.data<T>() : nullptr,
                                          .relu = x.relu,
                                          .residual = x.residual ? residual.data<T>() : nullptr});
  return to_host_f64(c);
}

// Label, vocabulary and projection sizes, even and odd, for few rows and many.
TEST(CudaProduct, F32ResultsAreExactForAnyEpilogueAndRows) {
  SKIP_WITHOUT_GPU();
  CpuContext cpu({.threads = 2});
  CudaContext quick, deterministic({.deterministic = true});
  quick.arena().poison();
  deterministic.arena().poison();
  for (const auto& [outputs, width] :
       {std::pair<std::int64_t, std::int64_t>{3, 128}, {211, 128}, {512, 512}, {9004, 256}}) {
    for (const std::int64_t rows : {1, 5, 64, 65, 130, 1100}) {
      for (const auto& [bias, relu, residual] : {std::tuple{false, false, false},
                                                 {true, false, false},
                                                 {false, true, false},
                                                 {true, true, false},
                                                 {false, false, true},
                                                 {true, false, true}}) {
        SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(width) + " to " +
                     std::to_string(outputs) + (bias ? ", bias" : "") + (relu ? ", relu" : "") +
                     (residual ? ", residual" : ""));
        const Case x{rows, outputs, width, bias, relu, residual};
        const std::vector<double> expected = result_of<float>(cpu, x);
        EXPECT_LE(relative_distance(result_of<BFloat16>(quick, x), expected), 2e-6);
        EXPECT_LE(relative_distance(result_of<BFloat16>(deterministic, x), expected), 2e-6);
      }
    }
  }
}

// An overlapped product loads its weight before the previous kernel has ended, but never before a
// kernel that writes the weight: neither right before the product nor with an overlapped kernel in
// between.
TEST(CudaProduct, ReadsAWeightWrittenJustBefore) {
  SKIP_WITHOUT_GPU();
  CudaContext cuda;
  constexpr std::int64_t kRows = 8, kWidth = 1024;
  const Tensor x = unwritten_tensor(cuda, DType::bf16, {kRows, kWidth}),
               weight = unwritten_tensor(cuda, DType::bf16, {kWidth, kWidth});
  fill(x, 1);
  std::vector<Tensor> results;
  constexpr int kRounds = 100;
  for (int round = 0; round < kRounds; ++round) {
    fill(weight, round);
    if (round % 2 == 1) {
      kernels::run(cuda, kernels::Scale<BFloat16>{.count = kRows * kWidth,
                                                  .factor = 1,
                                                  .x = x.data<BFloat16>(),
                                                  .out = x.data<BFloat16>()});
    }
    results.push_back(unwritten_tensor(cuda, DType::f32, {kRows, kWidth}));
    kernels::run(cuda, Product<BFloat16, float>{.m = kRows,
                                                .n = kWidth,
                                                .k = kWidth,
                                                .a = x.data<BFloat16>(),
                                                .b = weight.data<BFloat16>(),
                                                .transpose_b = true,
                                                .c = results.back().data<float>()});
  }
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<float> expected(kRows * kWidth, static_cast<float>(kWidth * round));
    EXPECT_EQ(to_host<float>(results[static_cast<std::size_t>(round)]), expected) << round;
  }
}

TEST(CudaProduct, RefusesReluWithAResidual) {
  SKIP_WITHOUT_GPU();
  CudaContext cuda;
  EXPECT_THROW(result_of<BFloat16>(cuda, {8, 64, 64, true, true, true}), Error);
  EXPECT_THROW(result_of<BFloat16>(cuda, {200, 64, 64, false, true, true}), Error);
}

}  // namespace
}  // namespace nunchi::testing
