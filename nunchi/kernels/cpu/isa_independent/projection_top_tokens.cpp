#include "nunchi/kernels/projection_top_tokens.h"

#include "nunchi/kernels/next_hypotheses.h"

namespace nunchi::kernels {

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ProjectionTopTokens<T>& p) {
  const ScratchMemory scores(ctx.arena(), p.logits_bytes());
  const auto [product, allowed] = p.unfused(scores.as<Accumulator<T>>());
  run(ctx, product);
  run(ctx, allowed);
}
template void compute<AnyCpu>(CpuContext&, const ProjectionTopTokens<float>&);
template void compute<AnyCpu>(CpuContext&, const ProjectionTopTokens<double>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const NextHypotheses<T>& p) {
  run(ctx, p.top);
  run(ctx, p.step);
}
template void compute<AnyCpu>(CpuContext&, const NextHypotheses<float>&);
template void compute<AnyCpu>(CpuContext&, const NextHypotheses<double>&);

}  // namespace nunchi::kernels
