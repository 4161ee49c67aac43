// Scatters and gathers rows.
#include "nunchi/kernels/cuda/common/device.h"
#include "nunchi/kernels/decode_attention.h"

namespace nunchi::kernels {
namespace {

constexpr int kThreads = 256;

template <class N>
struct RowMove {
  Rows rows;
  std::int64_t width;
  const std::int32_t *from_index, *to_index;  // null: the row's own index
  const N* from;
  std::int64_t from_stride;
  N* to;
  std::int64_t to_stride;
  bool clear_tail;
};

// One thread for Width neighbouring columns of a row.
template <class N, int Width>
__global__ void move_kernel(RowMove<N> p) {
  wait_for_previous_kernel();
  const std::int64_t columns = p.width / Width;
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t row = i / columns, column = i % columns * Width;
  if (row >= p.rows.capacity) return;
  const bool real = row < real_rows(p.rows);
  if (!real && !p.clear_tail) return;
  // The indices of spare rows are undefined.
  const std::int64_t source = real && p.from_index != nullptr ? p.from_index[row] : row;
  const std::int64_t target = real && p.to_index != nullptr ? p.to_index[row] : row;
  const N* from = p.from + source * p.from_stride + column;
  N* to = p.to + target * p.to_stride + column;
  if constexpr (Width * sizeof(N) == 16) {
    *reinterpret_cast<uint4*>(to) =
        real ? *reinterpret_cast<const uint4*>(from) : make_uint4(0, 0, 0, 0);
  } else {
    *to = real ? *from : from_float<N>(0.0f);
  }
}

template <class N>
void move(CudaContext& ctx, const RowMove<N>& p, const char* name) {
  if (p.rows.capacity * p.width == 0) return;
  constexpr int kVector = 16 / sizeof(N);
  const auto rows_are_aligned = [](const N* pointer, std::int64_t stride) {
    return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0 && stride % kVector == 0;
  };

  if (p.width % kVector == 0 && rows_are_aligned(p.from, p.from_stride) &&
      rows_are_aligned(p.to, p.to_stride)) {
    const std::int64_t items = p.rows.capacity * p.width / kVector;
    launch_overlapped(ctx, name, move_kernel<N, kVector>, {blocks_for(items, kThreads), kThreads},
                      p);
  } else {
    const std::int64_t items = p.rows.capacity * p.width;
    launch_overlapped(ctx, name, move_kernel<N, 1>, {blocks_for(items, kThreads), kThreads}, p);
  }
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ScatterRows<T>& p) {
  move(ctx,
       RowMove<Native<T>>{.rows = p.rows,
                          .width = p.width,
                          .from_index = nullptr,
                          .to_index = p.index,
                          .from = native(p.from),
                          .from_stride = p.from_stride,
                          .to = native(p.to),
                          .to_stride = p.to_stride,
                          .clear_tail = false},
       p.name());
}
template void compute<Cuda>(CudaContext&, const ScatterRows<float>&);
template void compute<Cuda>(CudaContext&, const ScatterRows<BFloat16>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const GatherRows<T>& p) {
  move(ctx,
       RowMove<Native<T>>{.rows = p.rows,
                          .width = p.width,
                          .from_index = p.index,
                          .to_index = nullptr,
                          .from = native(p.from),
                          .from_stride = p.from_stride,
                          .to = native(p.to),
                          .to_stride = p.width,
                          .clear_tail = true},
       p.name());
}
template void compute<Cuda>(CudaContext&, const GatherRows<float>&);
template void compute<Cuda>(CudaContext&, const GatherRows<BFloat16>&);

}  // namespace nunchi::kernels
