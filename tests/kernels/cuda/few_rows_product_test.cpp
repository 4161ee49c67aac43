// Matrix products (GEMM) with few rows, on the GPU.
#include "nunchi/kernels/cuda/product/few_rows_product.h"

#include "tests/kernels/cuda/compare.h"

namespace nunchi::testing {
namespace {

struct Weight {
  std::int64_t n, k;
};

// Projections and feed-forward layers of the tiny, base and big models; numbers of outputs that
// are not a multiple of 16; vocabularies, for which a block loops over several tiles.
constexpr Weight kWeights[] = {{384, 128},  {128, 256},   {1536, 512},  {512, 512},   {2048, 512},
                               {512, 2048}, {3072, 1024}, {1024, 1024}, {4096, 1024}, {1024, 4096},
                               {236, 192},  {512, 64},    {52, 1152},   {2112, 1280}};
constexpr Weight kVocabularies[] = {{9000, 128}, {20'004, 512}, {10'000, 1024}};

// Sets `launched` to whether the kernel took the product.
template <class C>
Tensor product_of(CudaContext& context, const Tensor& a, const Tensor& b, const Tensor& bias,
                  std::int64_t rows, bool relu, bool& launched) {
  const Tensor c =
      unwritten_tensor(context, sizeof(C) == 2 ? DType::bf16 : DType::f32, {rows, b.size(0)});
  launched = kernels::try_few_rows_product(
      context,
      kernels::Product<BFloat16, C>{.m = rows,
                                    .n = b.size(0),
                                    .k = b.size(1),
                                    .a = a.data<BFloat16>(),
                                    .b = b.data<BFloat16>(),
                                    .transpose_b = true,
                                    .c = c.data<C>(),
                                    .bias = bias.defined() ? bias.data<BFloat16>() : nullptr,
                                    .relu = relu});
  return c;
}

// The same product on the CPU, in f32.
std::vector<double> expected_of(const Weight& w, std::int64_t rows, bool with_bias, bool relu) {
  CpuContext cpu({.threads = 2});
  const Tensor a = input(cpu, DType::f32, {rows, w.k}, 1),
               b = input(cpu, DType::f32, {w.n, w.k}, 2), bias = input(cpu, DType::f32, {w.n}, 3);
  const Tensor c = unwritten_tensor(cpu, DType::f32, {rows, w.n});
  kernels::run(cpu, kernels::Product<float>{.m = rows,
                                            .n = w.n,
                                            .k = w.k,
                                            .a = a.data<float>(),
                                            .b = b.data<float>(),
                                            .transpose_b = true,
                                            .c = c.data<float>(),
                                            .bias = with_bias ? bias.data<float>() : nullptr,
                                            .relu = relu});
  return to_host_f64(c);
}

std::vector<double> first_rows(const std::vector<double>& all, std::int64_t rows, std::int64_t n) {
  return {all.begin(), all.begin() + rows * n};
}

// For each number of rows, compares the product with the CPU's, and its first rows bitwise with the
// previous, smaller product, which may use other tile sizes.
void check_weight(const Weight& w, std::initializer_list<std::int64_t> rows_to_try) {
  CudaContext cuda;
  cuda.arena().poison();
  const std::int64_t max_rows = kernels::kMaxFewRows;
  const Tensor a = input(cuda, DType::bf16, {max_rows, w.k}, 1),
               b = input(cuda, DType::bf16, {w.n, w.k}, 2),
               bias_values = input(cuda, DType::bf16, {w.n}, 3);
  for (const bool epilogue : {false, true}) {
    const std::vector<double> all = expected_of(w, max_rows, epilogue, epilogue);
    std::vector<double> previous;  // the result for previous_rows rows
    std::int64_t previous_rows = 0;
    for (const std::int64_t rows : rows_to_try) {
      const std::vector<double> expected = first_rows(all, rows, w.n);
      const Tensor bias = epilogue ? bias_values : Tensor();
      bool launched = false, launched_bf16 = false;
      const Tensor c = product_of<float>(cuda, a, b, bias, rows, epilogue, launched);
      const Tensor rounded = product_of<BFloat16>(cuda, a, b, bias, rows, epilogue, launched_bf16);
      ASSERT_EQ(launched, launched_bf16);
      if (rows <= 16) {
        ASSERT_TRUE(launched) << w.n << " x " << w.k << ", " << rows << " rows";
      }
      if (!launched) continue;
      const std::vector<double> found = to_host_f64(c);
      EXPECT_LE(relative_distance(found, expected), 2e-6)
          << w.n << " x " << w.k << ", " << rows << " rows";
      EXPECT_LE(relative_distance(to_host_f64(rounded), expected), 5e-3)
          << w.n << " x " << w.k << ", " << rows << " rows";
      if (rows > previous_rows) {
        EXPECT_TRUE(same_bits(first_rows(found, previous_rows, w.n), previous)) << rows << " rows";
        previous = found;
        previous_rows = rows;
      }
    }
  }
}

TEST(CudaFewRowsProduct, MatchesTheCpuAndRowsAreIndependent) {
  SKIP_WITHOUT_GPU();
  for (const Weight& w : kWeights) check_weight(w, {1, 2, 7, 8, 9, 16, 17, 31, 33, 64});
}

TEST(CudaFewRowsProduct, MatchesTheCpuForVocabularies) {
  SKIP_WITHOUT_GPU();
  for (const Weight& w : kVocabularies) check_weight(w, {1, 8, 13, 32, 64});
}

TEST(CudaFewRowsProduct, ASingleRowHasTheSameBitsAsInABatch) {
  SKIP_WITHOUT_GPU();
  CudaContext cuda;
  for (const Weight& w : {Weight{512, 512}, {512, 2048}, {1536, 512}}) {
    const std::int64_t max_rows = kernels::kMaxFewRows;
    const Tensor a = input(cuda, DType::bf16, {max_rows, w.k}, 1),
                 b = input(cuda, DType::bf16, {w.n, w.k}, 2);
    bool launched = false;
    const std::vector<float> together =
        to_host<float>(product_of<float>(cuda, a, b, {}, max_rows, false, launched));
    ASSERT_TRUE(launched);
    for (const std::int64_t row : {1, 12, 40, 63}) {
      const Tensor c = Tensor::empty(cuda, DType::f32, {1, w.n});
      ASSERT_TRUE(kernels::try_few_rows_product(
          cuda, kernels::Product<BFloat16, float>{.m = 1,
                                                  .n = w.n,
                                                  .k = w.k,
                                                  .a = a.data<BFloat16>() + row * w.k,
                                                  .b = b.data<BFloat16>(),
                                                  .transpose_b = true,
                                                  .c = c.data<float>()}));
      const auto from = together.begin() + row * w.n;
      EXPECT_TRUE(same_bits(to_host<float>(c), std::vector<float>(from, from + w.n))) << row;
    }
  }
}

TEST(CudaFewRowsProduct, RejectsUnsuitableProducts) {
  SKIP_WITHOUT_GPU();
  CudaContext cuda;
  const Tensor memory = Tensor::empty(cuda, DType::bf16, {1 << 20});
  BFloat16* buffer = memory.data<BFloat16>();
  using Gemm = kernels::Product<BFloat16>;
  const Gemm good{.m = 4,
                  .n = 128,
                  .k = 128,
                  .a = buffer,
                  .b = buffer + 4096,
                  .transpose_b = true,
                  .c = buffer + 65536,
                  .bias = buffer + 131072};
  EXPECT_TRUE(kernels::try_few_rows_product(cuda, good));
  const auto refused = [&](auto&& change) {
    Gemm changed = good;
    change(changed);
    return !kernels::try_few_rows_product(cuda, changed);
  };
  EXPECT_TRUE(refused([](Gemm& p) { p.m = 65; }));
  EXPECT_TRUE(refused([](Gemm& p) { p.n = 126; }));
  EXPECT_TRUE(refused([](Gemm& p) { p.k = 96; }));
  // K from 1,025 to 2,048 must be a multiple of 128, and K must be at most 4,096.
  EXPECT_TRUE(refused([](Gemm& p) { p.k = 1088; }));
  EXPECT_TRUE(refused([](Gemm& p) { p.k = 4352; }));
  EXPECT_TRUE(refused([](Gemm& p) { p.a += 4; }));
  EXPECT_TRUE(refused([](Gemm& p) { p.b += 4; }));
  EXPECT_TRUE(refused([](Gemm& p) { p.c += 4; }));
  EXPECT_TRUE(refused([](Gemm& p) { p.bias += 4; }));
  EXPECT_TRUE(refused([](Gemm& p) { p.transpose_a = true; }));
  EXPECT_TRUE(refused([](Gemm& p) { p.transpose_b = false; }));
  EXPECT_TRUE(refused([](Gemm& p) { p.accumulate = true, p.bias = nullptr; }));
}

TEST(CudaFewRowsProduct, ReluPropagatesNaN) {
  SKIP_WITHOUT_GPU();
  CudaContext cuda;
  std::vector<float> values(512, 1);
  values[300] = NAN;
  const Tensor values_f32 = from_host(cuda, values, {1, 512});
  const Tensor a = Tensor::empty(cuda, DType::bf16, {1, 512});
  convert(values_f32, a);
  const Tensor b = input(cuda, DType::bf16, {64, 512}, 2);
  bool launched = false;
  for (const double x : to_host_f64(product_of<float>(cuda, a, b, {}, 1, true, launched))) {
    EXPECT_TRUE(std::isnan(x));
  }
  EXPECT_TRUE(launched);
}

}  // namespace
}  // namespace nunchi::testing
