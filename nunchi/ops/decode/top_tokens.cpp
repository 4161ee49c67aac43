#include "nunchi/ops/decode/top_tokens.h"

#include "nunchi/kernels/search.h"
#include "nunchi/ops/check.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {

TopTokens top_tokens(const Tensor& scores, std::int64_t n) {
  check(scores.shape().dimensions() == 2 && scores.contiguous(), "top_tokens",
        "scores must be a matrix, not " + scores.shape().to_string());
  const std::int64_t rows = scores.size(0);
  check(n >= 1 && n <= scores.size(1), "top_tokens",
        "cannot take the " + std::to_string(n) + " most likely of " +
            std::to_string(scores.size(1)) + " tokens");
  ContextBase& context = scores.context();
  const TopTokens top{
      .ids = Tensor::empty(context, DType::i32, {rows, n}),
      .log_probs = Tensor::empty(context, accumulator_type(scores.dtype()), {rows, n})};
  dispatch(scores, [&]<class T>(auto& ctx) {
    kernels::run(ctx, kernels::TopTokens<T>{.rows = rows,
                                            .vocabulary = scores.size(1),
                                            .count = n,
                                            .logits = scores.data<T>(),
                                            .log_probs = top.log_probs.data<Accumulator<T>>(),
                                            .ids = top.ids.data<std::int32_t>()});
  });
  return top;
}

}  // namespace nunchi
