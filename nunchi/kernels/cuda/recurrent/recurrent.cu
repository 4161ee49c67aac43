#include "nunchi/kernels/cuda/recurrent/recurrent_common.h"

namespace nunchi::kernels {
namespace {

// Writes the states before the first step. For a sentence without tokens, the initial state is also
// the last state.
template <class N>
__global__ void initial_states_kernel(const Recurrence<N> p, std::int64_t active) {
  const RankColumn thread(static_cast<int>(p.in.width));
  if (thread.rank >= p.in.plan.sentences) return;
  const std::int64_t state = state_at(p.in, thread.rank, thread.column);
  const float h = p.in.initial_h != nullptr ? to_float(p.in.initial_h[state]) : 0.0f;
  if (thread.rank < active) {
    p.in.previous_h[step_order_at(p.in, thread.rank, thread.column)] = from_float<N>(h);
    return;
  }
  if (p.last_h != nullptr) p.last_h[state] = from_float<N>(h);
  if (p.last_c != nullptr)
    p.last_c[state] = p.in.initial_c != nullptr ? p.in.initial_c[state] : 0.0f;
}

// One thread per column of a sentence. `products` is h · W_hhᵀ, null if h is zero.
template <class N, bool Lstm>
__global__ void token_kernel(const Recurrence<N> p, RecurrentStep step, const float* products) {
  const int H = static_cast<int>(p.in.width);
  const auto [i, j] = RankColumn(H);
  if (i >= step.active) return;
  constexpr int kGates = Lstm ? 4 : 3;
  const std::int64_t element = step_order_at(p.in, step.first + i, j);
  N* gates = gates_at(p.in, i, step, j);
  float a[kGates], b[kGates];
#pragma unroll
  for (int g = 0; g < kGates; ++g) {
    a[g] = to_float(gates[g * H]);
    b[g] = to_float(p.bias[g * H + j]);
    if (products != nullptr) b[g] += products[(i * kGates + g) * H + j];
  }
  float h, kept;
  if constexpr (Lstm) {
    const float in = logistic(a[0] + b[0]), forget = logistic(a[1] + b[1]),
                cell = tanhf(a[2] + b[2]), output = logistic(a[3] + b[3]);
    kept = forget * previous_cell(p.in, i, step, j) + in * cell;
    h = output * tanhf(kept);
    gates[0] = from_float<N>(in);
    gates[H] = from_float<N>(forget);
    gates[2 * H] = from_float<N>(cell);
    gates[3 * H] = from_float<N>(output);
  } else {
    const float reset = logistic(a[0] + b[0]), update = logistic(a[1] + b[1]);
    kept = b[2];
    const float candidate = tanhf(a[2] + reset * kept);
    h = (1 - update) * candidate + update * to_float(p.in.previous_h[element]);
    gates[0] = from_float<N>(reset);
    gates[H] = from_float<N>(update);
    gates[2 * H] = from_float<N>(candidate);
  }
  p.in.saved[element] = kept;
  const N rounded = from_float<N>(h);
  p.out[p.in.plan.row(i, step.index, p.in.reverse) * p.out_stride + j] = rounded;
  if (i < step.next_active) {
    p.in.previous_h[step_order_at(p.in, step.first + step.active + i, j)] = rounded;
    return;
  }
  const std::int64_t state = state_at(p.in, i, j);
  if (p.last_h != nullptr) p.last_h[state] = rounded;
  if (Lstm && p.last_c != nullptr) p.last_c[state] = kept;
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Recurrence<T>& p) {
  using N = Native<T>;
  const RecurrentInputs<T>& in = p.in;
  const std::int64_t H = in.width, G = gates_of(in.cell);
  const std::int64_t max_active = in.plan.steps > 0 ? in.plan.active[0] : 0;
  const Recurrence<N> arguments = native(p);
  const auto blocks = [&](std::int64_t rows) { return blocks_for(rows * H, kRecurrentThreads); };
  if (in.plan.sentences > 0) {
    initial_states_kernel<<<blocks(in.plan.sentences), kRecurrentThreads, 0, ctx.stream()>>>(
        arguments, max_active);
    check_launch(p.name());
  }
  const ScratchMemory products(
      ctx.arena(), static_cast<std::size_t>(padded_rows(max_active) * G * H) * sizeof(float));
  for_steps(in.plan, [&](const RecurrentStep& step) {
    const bool from_zero = step.index == 0 && in.initial_h == nullptr;
    if (!from_zero) {
      Product<T, Accumulator<T>> product = in.product;
      product.m = padded_rows(step.active);
      product.a = in.previous_h + step.first * H;
      product.c = products.as<float>();
      run_unprofiled(ctx, product);
    }
    const float* step_products = from_zero ? nullptr : products.as<float>();
    const auto kernel = in.cell == CellKind::lstm ? token_kernel<N, true> : token_kernel<N, false>;
    kernel<<<blocks(step.active), kRecurrentThreads, 0, ctx.stream()>>>(arguments, step,
                                                                        step_products);
    check_launch(p.name());
  });
  clear_tail(ctx, in.rows, H, p.out_stride, arguments.out);
  clear_tail(ctx, in.rows, H, H, arguments.in.previous_h);
}
template void compute<Cuda>(CudaContext&, const Recurrence<float>&);
template void compute<Cuda>(CudaContext&, const Recurrence<BFloat16>&);

}  // namespace nunchi::kernels
