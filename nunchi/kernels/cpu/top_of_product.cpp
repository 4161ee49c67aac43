#include "nunchi/kernels/top_of_product.h"

#include "nunchi/kernels/next_hypotheses.h"

namespace nunchi::kernels::cpu {
namespace {

template <class T>
void top_of_product(CpuContext& ctx, const TopOfProduct<T>& p) {
  const ScratchMemory scores(ctx.arena(), p.score_bytes());
  const auto [product, allowed] = p.parts(scores.as<Summed<T>>());
  run(ctx, product);
  run(ctx, allowed);
}

template <class T>
void next_hypotheses(CpuContext& ctx, const NextHypotheses<T>& p) {
  run(ctx, p.top);
  run(ctx, p.step);
}

}  // namespace

template <>
void compute<Isa::portable>(CpuContext& ctx, const TopOfProduct<float>& p) {
  top_of_product(ctx, p);
}
template <>
void compute<Isa::portable>(CpuContext& ctx, const TopOfProduct<double>& p) {
  top_of_product(ctx, p);
}

template <>
void compute<Isa::portable>(CpuContext& ctx, const NextHypotheses<float>& p) {
  next_hypotheses(ctx, p);
}
template <>
void compute<Isa::portable>(CpuContext& ctx, const NextHypotheses<double>& p) {
  next_hypotheses(ctx, p);
}

}  // namespace nunchi::kernels::cpu
