#include "nunchi/ops/decode/mean_probabilities.h"

#include <string>

#include "nunchi/kernels/mean_probabilities.h"
#include "nunchi/ops/check.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {

static_assert(kMaxMeanScores == kernels::MeanProbabilities<float>::kMaxMembers);

Tensor mean_probabilities(std::span<const Tensor> scores) {
  constexpr const char* kName = "mean_probabilities";
  check(!scores.empty() && scores.size() <= kMaxMeanScores, kName,
        "needs from 1 to " + std::to_string(kMaxMeanScores) + " scores, not " +
            std::to_string(scores.size()));
  const Tensor& first = scores.front();
  check(first.shape().dimensions() == 2, kName,
        "scores must be a matrix, not " + first.shape().to_string());
  for (const Tensor& each : scores) {
    check_shape(kName, "scores", each, first.shape());
    check(each.dtype() == first.dtype() && each.contiguous(), kName,
          "scores must be contiguous and of one type");
  }
  const Tensor mean = Tensor::empty(first.context(), first.dtype(), first.shape());
  dispatch(first, [&]<class T>(auto& ctx) {
    if constexpr (std::is_same_v<T, Accumulator<T>>) {
      kernels::MeanProbabilities<T> p{.rows = first.size(0),
                                      .vocabulary = first.size(1),
                                      .members = static_cast<int>(scores.size()),
                                      .out = mean.data<T>()};
      for (std::size_t m = 0; m < scores.size(); ++m) p.logits[m] = scores[m].data<T>();
      kernels::run(ctx, p);
    } else {
      check(false, kName, "scores must be of an accumulator type");
    }
  });
  return mean;
}

}  // namespace nunchi
