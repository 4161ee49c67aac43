#include "nunchi/kernels/cuda/recurrent/recurrent_common.h"

namespace nunchi::kernels {
namespace {

// Gradients of the states that a step passes to the previous step, [ranks, H] each.
struct Carry {
  float *h, *c;
};

// One thread per column of a sentence. The gradient that bypasses a GRU's gates is kept in carry.h;
// the product with the weight adds to it.
template <class N, bool Lstm>
__global__ void token_backward_kernel(const RecurrenceBackward<N> p, const Carry carry,
                                      RecurrentStep step) {
  const int H = static_cast<int>(p.in.width);
  const auto [i, j] = RankColumn(H);
  if (i >= step.active) return;
  constexpr int kGates = Lstm ? 4 : 3;
  const std::int64_t element = step_order_at(p.in, step.first + i, j),
                     carry_index = step_order_at(p.in, i, j);
  const std::int64_t row = p.in.plan.row(i, step.index, p.in.reverse);
  const bool continues = i < step.next_active;
  N* gates = gates_at(p.in, i, step, j);
  float gate[kGates], d_a[kGates];
#pragma unroll
  for (int g = 0; g < kGates; ++g) gate[g] = to_float(gates[g * H]);
  float d_h = p.d_out != nullptr ? to_float(p.d_out[row * p.d_out_stride + j]) : 0.0f;
  if (continues) {
    d_h += carry.h[carry_index];
  } else if (p.d_last_h != nullptr) {
    d_h += to_float(p.d_last_h[state_at(p.in, i, j)]);
  }
  float reset = 1;  // GRU: in gate n, the gradient of b is the gradient of a times this
  if constexpr (Lstm) {
    float d_c = 0;
    if (continues) {
      d_c = carry.c[carry_index];
    } else if (p.d_last_c != nullptr) {
      d_c = p.d_last_c[state_at(p.in, i, j)];
    }
    const float in = gate[0], forget = gate[1], cell = gate[2], output = gate[3];
    const float tanh_cell = tanhf(p.in.saved[element]);
    d_c += d_h * output * (1 - tanh_cell * tanh_cell);
    d_a[0] = d_c * cell * in * (1 - in);
    d_a[1] = d_c * previous_cell(p.in, i, step, j) * forget * (1 - forget);
    d_a[2] = d_c * in * (1 - cell * cell);
    d_a[3] = d_h * tanh_cell * output * (1 - output);
    carry.c[carry_index] = d_c * forget;
  } else {
    const float update = gate[1], candidate = gate[2];
    reset = gate[0];
    d_a[2] = d_h * (1 - update) * (1 - candidate * candidate);
    d_a[1] = d_h * (to_float(p.in.previous_h[element]) - candidate) * update * (1 - update);
    d_a[0] = d_a[2] * p.in.saved[element] * reset * (1 - reset);
    carry.h[carry_index] = d_h * update;
  }
  N* d_b = p.d_b + (step.first + i) * kGates * H + j;
#pragma unroll
  for (int g = 0; g < kGates; ++g) {
    gates[g * H] = from_float<N>(d_a[g]);
    d_b[g * H] = from_float<N>(!Lstm && g == 2 ? d_a[g] * reset : d_a[g]);
  }
}

// Gradients of the initial states. For a sentence without tokens, it is the gradient of the last
// state.
template <class N>
__global__ void initial_gradients_kernel(const RecurrenceBackward<N> p, const Carry carry,
                                         std::int64_t active) {
  const RankColumn thread(static_cast<int>(p.in.width));
  if (thread.rank >= p.in.plan.sentences) return;
  const std::int64_t state = state_at(p.in, thread.rank, thread.column),
                     carry_index = step_order_at(p.in, thread.rank, thread.column);
  const bool no_tokens = thread.rank >= active;
  if (p.d_initial_h != nullptr) {
    const float last = p.d_last_h != nullptr ? to_float(p.d_last_h[state]) : 0.0f;
    p.d_initial_h[state] = from_float<N>(no_tokens ? last : carry.h[carry_index]);
  }
  if (p.d_initial_c != nullptr) {
    const float last = p.d_last_c != nullptr ? p.d_last_c[state] : 0.0f;
    p.d_initial_c[state] = no_tokens ? last : carry.c[carry_index];
  }
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const RecurrenceBackward<T>& p) {
  using N = Native<T>;
  const RecurrentInputs<T>& in = p.in;
  const std::int64_t H = in.width, G = gates_of(in.cell);
  const bool lstm = in.cell == CellKind::lstm;
  const std::int64_t max_active = in.plan.steps > 0 ? in.plan.active[0] : 0;
  const auto carry_bytes = static_cast<std::size_t>(padded_rows(max_active) * H) * sizeof(float);
  const ScratchMemory carry_h(ctx.arena(), carry_bytes),
      carry_c(ctx.arena(), lstm ? carry_bytes : 0);
  const RecurrenceBackward<N> arguments = native(p);
  const Carry carry{.h = carry_h.as<float>(), .c = carry_c.as<float>()};
  const auto blocks = [&](std::int64_t rows) { return blocks_for(rows * H, kRecurrentThreads); };
  for_steps_backward(in.plan, [&](const RecurrentStep& step) {
    const auto kernel = lstm ? token_backward_kernel<N, true> : token_backward_kernel<N, false>;
    kernel<<<blocks(step.active), kRecurrentThreads, 0, ctx.stream()>>>(arguments, carry, step);
    check_launch(p.name());
    if (step.index == 0 && p.d_initial_h == nullptr) return;
    Product<T, Accumulator<T>> product = in.product;
    product.m = padded_rows(step.active);
    product.a = p.d_b + step.first * G * H;
    product.c = carry_h.as<float>();
    product.accumulate = !lstm;
    run_unprofiled(ctx, product);
  });
  if (in.plan.sentences > 0 && (p.d_initial_h != nullptr || p.d_initial_c != nullptr)) {
    initial_gradients_kernel<<<blocks(in.plan.sentences), kRecurrentThreads, 0, ctx.stream()>>>(
        arguments, carry, max_active);
    check_launch(p.name());
  }
  clear_tail(ctx, in.rows, G * H, in.gates_stride, arguments.in.gates);
  clear_tail(ctx, in.rows, G * H, G * H, arguments.d_b);
}
template void compute<Cuda>(CudaContext&, const RecurrenceBackward<float>&);
template void compute<Cuda>(CudaContext&, const RecurrenceBackward<BFloat16>&);

}  // namespace nunchi::kernels
