#include "nunchi/ops/decode/mean_probabilities.h"

#include "tests/kernels/cuda/compare.h"

namespace nunchi::testing {
namespace {

TEST(MeanProbabilitiesOnGpu, MatchTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t vocabulary : {1, 37, 1000, 32001}) {
    for (const std::size_t members : {1u, 2u, 5u}) {
      SCOPED_TRACE(std::to_string(vocabulary) + " tokens");
      expect_like_cpu(
          [&](ContextBase& context, DType) {
            std::vector<Tensor> scores;
            for (std::size_t m = 0; m < members; ++m) {
              scores.push_back(random_tensor<float>(context, {3, vocabulary}, 7 + m, 8));
            }
            return std::vector{output("mean", mean_probabilities(scores))};
          },
          {.f32 = 1e-5}, {DType::f32});
    }
  }
}

}  // namespace
}  // namespace nunchi::testing
