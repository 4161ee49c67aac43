#include "nunchi/kernels/cross_entropy.h"

#include "tests/kernels/cuda/compare.h"
#include "tests/kernels/cuda/values.h"

namespace nunchi::testing {
namespace {

struct Problem {
  std::int64_t rows = 33, vocabulary = 1000;
  double smoothing = 0.1;
  bool write_gradient = true;
  std::int64_t first = 0;  // first row of the chunk
  bool partial = false;    // the batch has 64 rows, of which 40 are real
  double spread = 8;
  float shift = 0;
};

Job job_of(const Problem& x) {
  return [x](ContextBase& context, DType dtype) {
    auto values = random_values<float>(x.rows * x.vocabulary, 1, x.spread);
    for (float& value : values) value += x.shift;
    const Tensor logits = rounded_tensor(context, dtype, values, {x.rows, x.vocabulary});
    std::vector<std::int32_t> targets;
    for (std::int64_t r = 0; r < x.rows; ++r) {
      targets.push_back(static_cast<std::int32_t>((r * 7 + x.vocabulary - 1) % x.vocabulary));
    }
    const Tensor on_device = from_host(context, targets, {x.rows});
    const Tensor count = from_host(context, std::vector<std::int32_t>{40}, {1});
    const Tensor loss = unwritten_tensor(context, accumulator_type(dtype), {x.rows});
    dispatch(logits, [&]<class T>(auto& ctx) {
      kernels::run(ctx, kernels::CrossEntropy<T>{
                            .rows = {.capacity = x.partial ? 64 : x.rows,
                                     .count = x.partial ? count.data<std::int32_t>() : nullptr},
                            .first_row = x.first,
                            .chunk_rows = x.rows,
                            .vocabulary = x.vocabulary,
                            .smoothing = x.smoothing,
                            .write_gradient = x.write_gradient,
                            .targets = on_device.data<std::int32_t>(),
                            .logits = logits.data<T>(),
                            .loss = loss.data<Accumulator<T>>()});
    });
    // The gradients of the targets are far larger than all others, so they are compared separately.
    Output others = output("gradient", logits), target_gradient{"gradient of the targets", {}};
    for (std::int64_t r = 0; r < x.rows; ++r) {
      double& gradient = others.values[static_cast<std::size_t>(r * x.vocabulary + targets[r])];
      target_gradient.values.push_back(gradient);
      gradient = 0;
    }
    return std::vector<Output>{output("loss", loss), others, target_gradient};
  };
}

// Rounding to bf16 alone gives a relative error of up to 2^-9.
constexpr Tolerance kClose{.f32 = 2e-6, .bf16 = 4e-3};

TEST(CrossEntropyOnGpu, MatchesTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t vocabulary : {1, 3, 8, 37, 64, 1000, 4096, 4104, 5001, 16392}) {
    for (const double smoothing : {0.0, 0.1}) {
      SCOPED_TRACE(std::to_string(vocabulary) + " tokens");
      expect_like_cpu(job_of({.vocabulary = vocabulary, .smoothing = smoothing}), kClose);
    }
  }
  for (const std::int64_t rows : {1, 31, 1000}) {
    expect_like_cpu(job_of({.rows = rows, .vocabulary = 520}), kClose);
  }
}

// Vocabularies whose rows fit into the registers of small blocks or of large blocks, and others
// whose rows are read again in each pass.
TEST(CrossEntropyOnGpu, MatchesTheCpuForLargeVocabularies) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t vocabulary : {37000, 37001, 50257, 65536, 80000, 100003, 200000}) {
    SCOPED_TRACE(std::to_string(vocabulary) + " tokens");
    expect_like_cpu(job_of({.rows = 5, .vocabulary = vocabulary}), kClose);
  }
}

TEST(CrossEntropyOnGpu, KeepsLogitsIfNoGradientIsWanted) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t vocabulary : {999, 37000}) {
    expect_like_cpu(job_of({.vocabulary = vocabulary, .write_gradient = false}),
                    {.f32 = 2e-6, .bf16 = 1e-5});
  }
}

TEST(CrossEntropyOnGpu, RowsPastTheCountHaveZeroLossAndGradient) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t vocabulary : {37, 1000}) {
    for (const std::int64_t first : {0, 32, 40, 48}) {
      expect_like_cpu(
          job_of({.rows = 16, .vocabulary = vocabulary, .first = first, .partial = true}), kClose);
    }
  }
}

TEST(CrossEntropyOnGpu, LargeLogitsDoNotOverflow) {
  SKIP_WITHOUT_GPU();
  expect_like_cpu(job_of({.vocabulary = 130, .spread = 1000}), kClose);
  expect_like_cpu(job_of({.vocabulary = 130, .spread = 1, .shift = 2000}), kClose);
}

TEST(CrossEntropyOnGpu, HandlesImpossibleTokensAndNaN) {
  SKIP_WITHOUT_GPU();
  CudaContext cuda;
  for (const std::int64_t vocabulary : {37, 1000}) {
    auto values = random_values<float>(2 * vocabulary, 1);
    values[5] = NAN;
    values[static_cast<std::size_t>(vocabulary) + 6] = -INFINITY;
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Tensor logits = rounded_tensor(cuda, dtype, values, {2, vocabulary});
      const Tensor targets = from_host(cuda, std::vector<std::int32_t>{0, 1}, {2});
      const Tensor loss = unwritten_tensor(cuda, DType::f32, {2});
      dispatch(logits, [&]<class T>(auto& ctx) {
        kernels::run(ctx, kernels::CrossEntropy<T>{.rows = {.capacity = 2},
                                                   .chunk_rows = 2,
                                                   .vocabulary = vocabulary,
                                                   .write_gradient = true,
                                                   .targets = targets.data<std::int32_t>(),
                                                   .logits = logits.data<T>(),
                                                   .loss = loss.data<Accumulator<T>>()});
      });
      const auto found = to_host<float>(loss);
      EXPECT_TRUE(std::isnan(found[0]));
      EXPECT_TRUE(std::isfinite(found[1]));
      const auto gradient = to_host_f64(logits);
      EXPECT_TRUE(std::isnan(gradient[0]));
      EXPECT_EQ(gradient[static_cast<std::size_t>(vocabulary) + 6], 0);
    }
  }
}

}  // namespace
}  // namespace nunchi::testing
