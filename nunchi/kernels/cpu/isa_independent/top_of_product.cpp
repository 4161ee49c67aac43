#include "nunchi/kernels/top_of_product.h"

#include "nunchi/kernels/next_hypotheses.h"

namespace nunchi::kernels {

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const TopOfProduct<T>& p) {
  const ScratchMemory scores(ctx.arena(), p.score_bytes());
  const auto [product, allowed] = p.parts(scores.as<Accumulator<T>>());
  run(ctx, product);
  run(ctx, allowed);
}
template void compute<AnyCpu>(CpuContext&, const TopOfProduct<float>&);
template void compute<AnyCpu>(CpuContext&, const TopOfProduct<double>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const NextHypotheses<T>& p) {
  run(ctx, p.top);
  run(ctx, p.step);
}
template void compute<AnyCpu>(CpuContext&, const NextHypotheses<float>&);
template void compute<AnyCpu>(CpuContext&, const NextHypotheses<double>&);

}  // namespace nunchi::kernels
