#include "nunchi/kernels/cuda/recurrent/recurrent.h"

namespace nunchi::kernels {
namespace {

template <class N>
struct Backward {
  RecurrentDirection<N> in;
  const N* d_out;
  std::int64_t d_out_stride;
  const N* d_last_h;
  const float* d_last_c;
  N* d_b;
  N* d_first_h;
  float* d_first_c;
  float *carry_h, *carry_c;  // [places, H] from a step to the one before
};

// A thread for one column of one sentence. The state's own way past a GRU's gates waits in carry_h;
// the product with the weight adds to it.
template <class N, bool Lstm>
__global__ void token_back_kernel(Backward<N> p, RecurrentStep step) {
  const int H = p.in.width;
  const auto [i, j] = PlaceColumn(H);
  if (i >= step.active) return;
  constexpr int kGates = Lstm ? 4 : 3;
  const std::int64_t at = p.in.step_at(step.first + i, j), own = p.in.step_at(i, j);
  const std::int64_t row = p.in.plan.row(i, step.token, p.in.reverse);
  const bool goes_on = i < step.next;
  N* gates = p.in.gates_at(i, step, j);
  float gate[kGates], d_a[kGates];
#pragma unroll
  for (int g = 0; g < kGates; ++g) gate[g] = to_float(gates[g * H]);
  float d_h = p.d_out != nullptr ? to_float(p.d_out[row * p.d_out_stride + j]) : 0.0f;
  if (goes_on) {
    d_h += p.carry_h[own];
  } else if (p.d_last_h != nullptr) {
    d_h += to_float(p.d_last_h[p.in.state_at(i, j)]);
  }
  float reset = 1;  // between d_b and the gradient of a
  if constexpr (Lstm) {
    float d_c = 0;
    if (goes_on) {
      d_c = p.carry_c[own];
    } else if (p.d_last_c != nullptr) {
      d_c = p.d_last_c[p.in.state_at(i, j)];
    }
    const float in = gate[0], forget = gate[1], cell = gate[2], open = gate[3];
    const float shown = tanhf(p.in.kept[at]);
    d_c += d_h * open * (1 - shown * shown);
    d_a[0] = d_c * cell * in * (1 - in);
    d_a[1] = d_c * p.in.cell_before(i, step, j) * forget * (1 - forget);
    d_a[2] = d_c * in * (1 - cell * cell);
    d_a[3] = d_h * shown * open * (1 - open);
    p.carry_c[own] = d_c * forget;
  } else {
    const float update = gate[1], made = gate[2];
    reset = gate[0];
    d_a[2] = d_h * (1 - update) * (1 - made * made);
    d_a[1] = d_h * (to_float(p.in.previous[at]) - made) * update * (1 - update);
    d_a[0] = d_a[2] * p.in.kept[at] * reset * (1 - reset);
    p.carry_h[own] = d_h * update;
  }
  N* d_b = p.d_b + (step.first + i) * kGates * H + j;
#pragma unroll
  for (int g = 0; g < kGates; ++g) {
    gates[g * H] = from_float<N>(d_a[g]);
    d_b[g * H] = from_float<N>(!Lstm && g == 2 ? d_a[g] * reset : d_a[g]);
  }
}

// What the first states get; of a sentence without a token, what its last state got.
template <class N>
__global__ void end_kernel(Backward<N> p, std::int64_t active) {
  const PlaceColumn at(p.in.width);
  if (at.place >= p.in.plan.sentences) return;
  const std::int64_t state = p.in.state_at(at.place, at.column),
                     own = p.in.step_at(at.place, at.column);
  const bool none = at.place >= active;
  if (p.d_first_h != nullptr) {
    const float last = p.d_last_h != nullptr ? to_float(p.d_last_h[state]) : 0.0f;
    p.d_first_h[state] = from_float<N>(none ? last : p.carry_h[own]);
  }
  if (p.d_first_c != nullptr) {
    const float last = p.d_last_c != nullptr ? p.d_last_c[state] : 0.0f;
    p.d_first_c[state] = none ? last : p.carry_c[own];
  }
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const RecurrenceBackward<T>& p) {
  using N = Native<T>;
  const RecurrentInputs<T>& in = p.in;
  const std::int64_t H = in.width, G = gates_of(in.cell);
  const bool lstm = in.cell == CellKind::lstm;
  const std::int64_t most = in.plan.steps > 0 ? in.plan.active[0] : 0;
  const auto carried = static_cast<std::size_t>(padded_rows(most) * H) * sizeof(float);
  const ScratchMemory carry_h(ctx.arena(), carried), carry_c(ctx.arena(), lstm ? carried : 0);
  const Backward<N> job{.in = direction_of(in),
                        .d_out = native(p.d_out),
                        .d_out_stride = p.d_out_stride,
                        .d_last_h = native(p.d_last_h),
                        .d_last_c = p.d_last_c,
                        .d_b = native(p.d_b),
                        .d_first_h = native(p.d_first_h),
                        .d_first_c = p.d_first_c,
                        .carry_h = carry_h.as<float>(),
                        .carry_c = carry_c.as<float>()};
  const auto blocks = [&](std::int64_t rows) { return blocks_for(rows * H, kRecurrentThreads); };
  for_steps_back(in.plan, [&](const RecurrentStep& step) {
    const auto kernel = lstm ? token_back_kernel<N, true> : token_back_kernel<N, false>;
    kernel<<<blocks(step.active), kRecurrentThreads, 0, ctx.stream()>>>(job, step);
    check_launch(p.name());
    if (step.token == 0 && p.d_first_h == nullptr) return;
    dispatch(ctx, Product<T, Summed<T>>{.m = padded_rows(step.active),
                                        .n = H,
                                        .k = G * H,
                                        .a = p.d_b + step.first * G * H,
                                        .b = in.weight,
                                        .c = carry_h.as<float>(),
                                        .accumulate = !lstm});
  });
  if (in.plan.sentences > 0 && (p.d_first_h != nullptr || p.d_first_c != nullptr)) {
    end_kernel<<<blocks(in.plan.sentences), kRecurrentThreads, 0, ctx.stream()>>>(job, most);
    check_launch(p.name());
  }
  clear_tail(ctx, in.rows, G * H, in.gates_stride, job.in.gates);
  clear_tail(ctx, in.rows, G * H, G * H, job.d_b);
}
template void compute<Cuda>(CudaContext&, const RecurrenceBackward<float>&);
template void compute<Cuda>(CudaContext&, const RecurrenceBackward<BFloat16>&);

}  // namespace nunchi::kernels
