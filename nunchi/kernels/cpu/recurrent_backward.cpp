#include "nunchi/kernels/cpu/recurrent_common.h"

namespace nunchi::kernels {
namespace {

// The backward pass of one sentence's token.
template <class T>
struct TokenBack {
  std::int64_t width;
  T* gates;  // then overwritten with the gradient of a
  const T* kept;
  const T* h;        // the state before the token
  const T* c;        // null: zero
  const T* d_out;    // may be null
  const T* later_h;  // gradient of h from the next step, or of the last state; may be null
  const T* later_c;
  T* d_b;
  T* carry_h;  // gradient of h for the previous step
  T* carry_c;
};

template <class T>
void lstm_token_back(const TokenBack<T>& p) {
  const std::int64_t H = p.width;
  over_row<T>(H, [&]<class V>(std::int64_t i, V) {
    const V in = load<V>(p.gates + i), forget = load<V>(p.gates + H + i),
            cell = load<V>(p.gates + 2 * H + i), open = load<V>(p.gates + 3 * H + i);
    const V shown = tangent<V>(load<V>(p.kept + i));
    const V d_h = load_or_zero<V>(p.d_out, i) + load_or_zero<V>(p.later_h, i);
    const V d_c = load_or_zero<V>(p.later_c, i) + d_h * open * (T(1) - shown * shown);
    const auto give = [&](std::int64_t g, V d) {
      store<V>(p.gates + g * H + i, d);
      store<V>(p.d_b + g * H + i, d);
    };
    give(0, d_c * cell * in * (T(1) - in));
    give(1, d_c * load_or_zero<V>(p.c, i) * forget * (T(1) - forget));
    give(2, d_c * in * (T(1) - cell * cell));
    give(3, d_h * shown * open * (T(1) - open));
    store<V>(p.carry_c + i, d_c * forget);
  });
}

// The gradient that bypasses the gates is kept in carry_h; the product with the weight adds to it.
template <class T>
void gru_token_back(const TokenBack<T>& p) {
  const std::int64_t H = p.width;
  over_row<T>(H, [&]<class V>(std::int64_t i, V) {
    const V reset = load<V>(p.gates + i), update = load<V>(p.gates + H + i),
            made = load<V>(p.gates + 2 * H + i);
    const V d_h = load_or_zero<V>(p.d_out, i) + load_or_zero<V>(p.later_h, i);
    const V d_made = d_h * (T(1) - update) * (T(1) - made * made);
    const V d_update = d_h * (load<V>(p.h + i) - made) * update * (T(1) - update);
    const V d_reset = d_made * load<V>(p.kept + i) * reset * (T(1) - reset);
    store<V>(p.gates + i, d_reset);
    store<V>(p.gates + H + i, d_update);
    store<V>(p.gates + 2 * H + i, d_made);
    store<V>(p.d_b + i, d_reset);
    store<V>(p.d_b + H + i, d_update);
    store<V>(p.d_b + 2 * H + i, d_made * reset);
    store<V>(p.carry_h + i, d_h * update);
  });
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const RecurrenceBackward<T>& p) {
  const RecurrentInputs<T>& in = p.in;
  const std::int64_t H = in.width, G = gates_of(in.cell);
  const bool lstm = in.cell == CellKind::lstm;
  const RankView<T> ranks{in};
  const std::int64_t most = in.plan.steps > 0 ? in.plan.active[0] : 0;
  const auto carried = static_cast<std::size_t>(padded_rows(most) * H) * sizeof(T);
  const ScratchMemory carry_h(ctx.arena(), carried), carry_c(ctx.arena(), lstm ? carried : 0);
  for_steps_backward(in.plan, [&](const RecurrentStep& step) {
    parallel_ranges(ctx, step.active, rows_each(H), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t row = ranks.row(i, step.token), at = step.first + i;
        T *const own_h = carry_h.as<T>() + i * H, *const own_c = carry_c.as<T>() + i * H;
        const bool goes_on = i < step.next;
        const TokenBack<T> token{
            .width = H,
            .gates = ranks.gates(row),
            .kept = in.kept + at * H,
            .h = in.previous + at * H,
            .c = step.token > 0 ? in.kept + (step.before + i) * H : ranks.state(in.first_c, i),
            .d_out = p.d_out != nullptr ? p.d_out + row * p.d_out_stride : nullptr,
            .later_h = goes_on ? own_h : ranks.state(p.d_last_h, i),
            .later_c = goes_on ? own_c : ranks.state(p.d_last_c, i),
            .d_b = p.d_b + at * G * H,
            .carry_h = own_h,
            .carry_c = own_c};
        if (lstm) {
          lstm_token_back(token);
        } else {
          gru_token_back(token);
        }
      }
    });
    if (step.token == 0 && p.d_first_h == nullptr) return;
    Product<T> product = in.product;
    product.m = padded_rows(step.active);
    product.a = p.d_b + step.first * G * H;
    product.c = carry_h.as<T>();
    product.accumulate = !lstm;
    multiply(ctx, product);
  });
  for (std::int64_t i = 0; i < in.plan.sentences; ++i) {
    const bool none = i >= most;
    copy_or_clear<T>(none ? ranks.state(p.d_last_h, i) : carry_h.as<T>() + i * H,
                     ranks.state(p.d_first_h, i), H);
    copy_or_clear<T>(none ? ranks.state(p.d_last_c, i) : carry_c.as<T>() + i * H,
                     ranks.state(p.d_first_c, i), H);
  }
  clear_rows(in.rows, G * H, in.gates_stride, in.gates);
  clear_rows(in.rows, G * H, G * H, p.d_b);
}
template void compute<Cpu<kIsa>>(CpuContext&, const RecurrenceBackward<float>&);
template void compute<Cpu<kIsa>>(CpuContext&, const RecurrenceBackward<double>&);

}  // namespace nunchi::kernels
