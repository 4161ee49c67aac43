#include "nunchi/kernels/required_phrases.h"

namespace nunchi::kernels {

template <class Target, class T>
void compute(ContextOf<Target>&, const PhraseCandidates<T>& p) {
  const std::int64_t rows = p.counts.rows(p.rows);
  for (std::int64_t r = 0; r < rows; ++r) p.find(r);
}
template void compute<AnyCpu>(CpuContext&, const PhraseCandidates<float>&);
template void compute<AnyCpu>(CpuContext&, const PhraseCandidates<double>&);

template <class Target, class T>
void compute(ContextOf<Target>&, const ChooseCandidates<T>& p) {
  const std::int64_t units = p.next.counts.units(p.units);
  for (std::int64_t r = 0; r < units * p.width; ++r) p.list(r);
  for (std::int64_t u = 0; u < units; ++u) p.choose(u);
}
template void compute<AnyCpu>(CpuContext&, const ChooseCandidates<float>&);
template void compute<AnyCpu>(CpuContext&, const ChooseCandidates<double>&);

}  // namespace nunchi::kernels
