#include "nunchi/ops/decode/phrase_hypotheses.h"

#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

template <class T>
void compute_step(auto& ctx, const kernels::UnitPhrases* phrases,
                  const kernels::TopAllowedTokens<T>& allowed, const kernels::BeamStep<T>& step) {
  const kernels::TopTokens<T>& top = allowed.top;
  const auto rows = static_cast<std::size_t>(top.rows);
  const ScratchMemory ids(ctx.arena(), rows * kernels::kNextTokens * sizeof(std::int32_t));
  const ScratchMemory values(ctx.arena(), rows * kernels::kNextTokens * sizeof(T));
  kernels::ChooseCandidates<T> choice{.next = {.rows = top.rows,
                                               .vocabulary = top.vocabulary,
                                               .stride = step.stride,
                                               .counts = step.counts,
                                               .hypotheses = step.from,
                                               .phrases = phrases,
                                               .logits = top.logits,
                                               .ids = ids.as<std::int32_t>(),
                                               .values = values.as<T>()},
                                      .units = step.units,
                                      .width = step.width,
                                      .beam = step.beam,
                                      .candidates = step.candidates,
                                      .end_token = step.end_token,
                                      .options = step.options,
                                      .log_probs = top.log_probs,
                                      .ids = top.ids};
  using Candidate = typename kernels::ChooseCandidates<T>::Candidate;
  const ScratchMemory pool(ctx.arena(),
                           rows * static_cast<std::size_t>(choice.pool_size()) * sizeof(Candidate));
  choice.pool = pool.as<Candidate>();
  kernels::run(ctx, choice.next);
  kernels::run(ctx, allowed.bans);
  kernels::run(ctx, top);
  kernels::run(ctx, choice);
  kernels::run(ctx, step);
}

}  // namespace

template <class T>
void phrase_hypotheses(ContextBase& context, const kernels::UnitPhrases* phrases,
                       const kernels::TopAllowedTokens<T>& allowed,
                       const kernels::BeamStep<T>& step) {
  dispatch(context, dtype_of<T>, [&]<class Type>(auto& ctx) {
    if constexpr (std::is_same_v<Type, T>) compute_step(ctx, phrases, allowed, step);
  });
}

template void phrase_hypotheses(ContextBase& context, const kernels::UnitPhrases* phrases,
                                const kernels::TopAllowedTokens<float>& allowed,
                                const kernels::BeamStep<float>& step);
template void phrase_hypotheses(ContextBase& context, const kernels::UnitPhrases* phrases,
                                const kernels::TopAllowedTokens<double>& allowed,
                                const kernels::BeamStep<double>& step);

}  // namespace nunchi
