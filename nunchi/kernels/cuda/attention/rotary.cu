#include "nunchi/kernels/rotary.h"

#include "nunchi/kernels/cuda/common/device.h"

namespace nunchi::kernels {
namespace {

constexpr int kThreads = 256;

// One thread per pair of columns, or per eight neighbouring pairs.
template <class N, bool Aligned>
__global__ void rotary_kernel(const Rotary<N> p) {
  constexpr int kPairs = Aligned ? 8 : 1;
  const int half = static_cast<int>(p.head_width / 2);
  const float direction = p.inverse ? -1.0f : 1.0f;
  const int chunks = half / kPairs;
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t row = i / (std::int64_t{p.heads} * chunks);
  wait_for_previous_kernel();
  if (row >= real_rows(p.rows)) return;
  const int head = static_cast<int>(i / chunks % p.heads);
  const int column = static_cast<int>(i % chunks) * kPairs;
  const std::int64_t position = p.rows.position != nullptr ? p.rows.position[row] : row;
  const float* cosines = p.table + position * 2 * half + column;
  const float* sines = cosines + half;
  const std::int64_t first = std::int64_t{head} * 2 * half + column;
  const N* x = p.x + row * p.x_stride + first;
  N* out = p.out + row * p.out_stride + first;
  if constexpr (Aligned) {
    float a[8], b[8], cosine[8], sine[8], rotated_a[8], rotated_b[8];
    load8(x, a);
    load8(x + half, b);
    load8(cosines, cosine);
    load8(sines, sine);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      rotated_a[j] = a[j] * cosine[j] - b[j] * (sine[j] * direction);
      rotated_b[j] = b[j] * cosine[j] + a[j] * (sine[j] * direction);
    }
    store8(out, rotated_a);
    store8(out + half, rotated_b);
  } else {
    const float a = to_float(x[0]), b = to_float(x[half]);
    const float cosine = cosines[0], sine = sines[0] * direction;
    out[0] = from_float<N>(a * cosine - b * sine);
    out[half] = from_float<N>(b * cosine + a * sine);
  }
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Rotary<T>& p) {
  using N = Native<T>;
  const Rotary<N> arguments = native(p);
  const std::int64_t half = p.head_width / 2;
  const std::int64_t pairs = p.rows.capacity * p.heads * half;
  if (pairs == 0) return;
  const bool aligned = half % 8 == 0 && rows_are_aligned(arguments.x, p.x_stride) &&
                       rows_are_aligned(arguments.out, p.out_stride) &&
                       rows_are_aligned(arguments.table, p.head_width);
  if (aligned) {
    launch_overlapped(ctx, "rotary", rotary_kernel<N, true>,
                      {blocks_for(pairs / 8, kThreads), kThreads}, arguments);
  } else {
    launch_overlapped(ctx, "rotary", rotary_kernel<N, false>,
                      {blocks_for(pairs, kThreads), kThreads}, arguments);
  }
}
template void compute<Cuda>(CudaContext&, const Rotary<float>&);
template void compute<Cuda>(CudaContext&, const Rotary<BFloat16>&);

}  // namespace nunchi::kernels
