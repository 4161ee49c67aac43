#include "nunchi/kernels/cuda/embed_columns.h"
#include "nunchi/kernels/decode_attention.h"
#include "nunchi/kernels/step_rows.h"

namespace nunchi::kernels {
namespace {

constexpr int kSlotThreads = 64;

// Block h extends hypothesis h; the last block clears the rows past the last token.
__device__ void extend_slots(const ExtendSlots& p) {
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t h = blockIdx.x, count = p.hypothesis_count();
  if (h == p.hypotheses) {
    const std::int64_t rows = p.offset != nullptr ? p.offset[count] - p.offset[0] : count;
    for (std::int64_t row = rows + thread; row < p.capacity; row += kSlotThreads) {
      p.row_hypothesis[row] = 0;
      p.row_position[row] = 0;
      p.row_keys[row] = 0;
      p.row_slot[row] = 0;
      p.row_memory_begin[row] = 0;
      p.row_memory_length[row] = 0;
    }
    if (thread == 0) {
      p.count[0] = static_cast<std::int32_t>(rows);
      p.count[1] = static_cast<std::int32_t>(count);
    }
    return;
  }
  if (h >= count) return;
  std::int32_t* slot = p.slot + h * p.stride;
  std::int32_t length = 0;
  if (p.parent != nullptr) {
    const std::int64_t parent = p.parent[h];
    const std::int32_t* old_slot = p.old_slot + parent * p.old_stride;
    length = p.old_length[parent];
    for (std::int32_t i = thread; i < length; i += kSlotThreads) slot[i] = old_slot[i];
  }
  const std::int64_t first = p.offset != nullptr ? p.offset[h] - p.offset[0] : h;
  const std::int32_t tokens = p.offset != nullptr ? p.offset[h + 1] - p.offset[h] : 1;
  const UnitSlots unit = p.units[p.unit[h]];
  for (std::int32_t i = thread; i < tokens; i += kSlotThreads) {
    const std::int64_t row = first + i;
    const std::int32_t new_slot = p.slot_of(p.unit[h], unit.prompt, h, length + i);
    slot[length + i] = new_slot;
    p.row_hypothesis[row] = static_cast<std::int32_t>(h);
    p.row_position[row] = length + i;
    p.row_keys[row] = length + i + 1;
    p.row_slot[row] = new_slot;
    p.row_memory_begin[row] = unit.memory_begin;
    p.row_memory_length[row] = unit.memory_length;
  }
  if (thread == 0) {
    p.length[h] = length + tokens;
    p.last_row[h] = static_cast<std::int32_t>(first + tokens - 1);
  }
}

__global__ __launch_bounds__(kSlotThreads) void extend_slots_kernel(const ExtendSlots p) {
  wait_for_previous_kernel();
  extend_slots(p);
}

// For one token per hypothesis: the token of hypothesis h is row h of the embedded rows.
template <class N, bool Aligned>
__global__ __launch_bounds__(kSlotThreads) void step_rows_kernel(const ExtendSlots p,
                                                                 const Embedding<N> e,
                                                                 const float scale) {
  wait_for_previous_kernel();
  const std::int64_t h = blockIdx.x, count = p.hypothesis_count();
  // The hypothesis's number of tokens so far.
  const std::int32_t position = h < count && p.parent != nullptr ? p.old_length[p.parent[h]] : 0;
  // Block h writes row h; the last block writes all rows from p.hypotheses to the capacity. Rows
  // without a hypothesis become zero.
  const std::int64_t end = h == p.hypotheses ? p.capacity : min(h + 1, p.capacity);
  for (std::int64_t row = h; row < end; ++row) {
    for (std::int64_t column = threadIdx.x * 8; column < e.width; column += kSlotThreads * 8) {
      float x[8] = {};
      if (row < count) embed_columns<Aligned>(e, scale, e.ids[row], position, column, x);
      store_columns<Aligned>(e.out + row * e.width + column, e.width - column, x);
    }
  }
  extend_slots(p);
}

}  // namespace

template <>
void compute<Cuda>(CudaContext& ctx, const ExtendSlots& p) {
  launch_overlapped(ctx, p.name(), extend_slots_kernel,
                    {static_cast<unsigned>(p.hypotheses + 1), kSlotThreads}, p);
}
template <class Target, class T>
void compute(ContextOf<Target>& ctx, const StepRows<T>& p) {
  const Embedding<T>& e = p.embedding;
  // With several tokens per hypothesis, the embedding needs the row positions that extend_slots
  // computes.
  if (p.slots.offset != nullptr || e.dropout.active() || e.rows.capacity != p.slots.capacity) {
    run(ctx, p.slots);
    return run(ctx, e);
  }
  using N = Native<T>;
  const Grid grid{static_cast<unsigned>(p.slots.hypotheses + 1), kSlotThreads};
  const auto launch = [&]<bool Aligned>() {
    launch_overlapped(ctx, p.name(), step_rows_kernel<N, Aligned>, grid, p.slots, native(e),
                      static_cast<float>(e.scale));
  };
  if (rows_are_aligned(e)) {
    launch.template operator()<true>();
  } else {
    launch.template operator()<false>();
  }
}
template void compute<Cuda>(CudaContext&, const StepRows<float>&);
template void compute<Cuda>(CudaContext&, const StepRows<BFloat16>&);

}  // namespace nunchi::kernels
