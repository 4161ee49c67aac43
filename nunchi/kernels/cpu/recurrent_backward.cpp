#include "nunchi/kernels/cpu/recurrent_common.h"

namespace nunchi::kernels {
namespace {

// Arguments of the backward pass of one token.
template <class T>
struct TokenBackward {
  std::int64_t width;
  T* gates;  // activated gates; are overwritten with the gradient of `a`
  const T* saved;
  const T* h;         // the state before the token
  const T* c;         // null: zero
  const T* d_out;     // may be null
  const T* d_next_h;  // gradient of h from the next step, or of the last state; may be null
  const T* d_next_c;
  T* d_b;
  T* carry_h;  // gradient of h for the previous step
  T* carry_c;
};

template <class T>
void lstm_token_backward(const TokenBackward<T>& p) {
  const std::int64_t H = p.width;
  for_each_vector<T>(H, [&]<class V>(std::int64_t i, V) {
    const V in = load<V>(p.gates + i), forget = load<V>(p.gates + H + i),
            cell = load<V>(p.gates + 2 * H + i), output = load<V>(p.gates + 3 * H + i);
    const V tanh_c = hyperbolic_tangent<V>(load<V>(p.saved + i));
    const V d_h = load_or_zero<V>(p.d_out, i) + load_or_zero<V>(p.d_next_h, i);
    const V d_c = load_or_zero<V>(p.d_next_c, i) + d_h * output * (T(1) - tanh_c * tanh_c);
    const auto store_gradient = [&](std::int64_t g, V d) {
      store<V>(p.gates + g * H + i, d);
      store<V>(p.d_b + g * H + i, d);
    };
    store_gradient(0, d_c * cell * in * (T(1) - in));
    store_gradient(1, d_c * load_or_zero<V>(p.c, i) * forget * (T(1) - forget));
    store_gradient(2, d_c * in * (T(1) - cell * cell));
    store_gradient(3, d_h * tanh_c * output * (T(1) - output));
    store<V>(p.carry_c + i, d_c * forget);
  });
}

// carry_h gets the gradient that bypasses the gates; the product with W_hh adds the rest later.
template <class T>
void gru_token_backward(const TokenBackward<T>& p) {
  const std::int64_t H = p.width;
  for_each_vector<T>(H, [&]<class V>(std::int64_t i, V) {
    const V reset = load<V>(p.gates + i), update = load<V>(p.gates + H + i),
            candidate = load<V>(p.gates + 2 * H + i);
    const V d_h = load_or_zero<V>(p.d_out, i) + load_or_zero<V>(p.d_next_h, i);
    const V d_candidate = d_h * (T(1) - update) * (T(1) - candidate * candidate);
    const V d_update = d_h * (load<V>(p.h + i) - candidate) * update * (T(1) - update);
    const V d_reset = d_candidate * load<V>(p.saved + i) * reset * (T(1) - reset);
    store<V>(p.gates + i, d_reset);
    store<V>(p.gates + H + i, d_update);
    store<V>(p.gates + 2 * H + i, d_candidate);
    store<V>(p.d_b + i, d_reset);
    store<V>(p.d_b + H + i, d_update);
    store<V>(p.d_b + 2 * H + i, d_candidate * reset);
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
  const std::int64_t first_active = in.plan.steps > 0 ? in.plan.active[0] : 0;
  const auto carry_bytes = static_cast<std::size_t>(padded_rows(first_active) * H) * sizeof(T);
  const ScratchMemory carry_h(ctx.arena(), carry_bytes),
      carry_c(ctx.arena(), lstm ? carry_bytes : 0);
  for_steps_backward(in.plan, [&](const RecurrentStep& step) {
    parallel_ranges(ctx, step.active, row_grain(H), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t row = ranks.row(i, step.index), index = step.first + i;
        T* const rank_carry_h = carry_h.as<T>() + i * H;
        T* const rank_carry_c = carry_c.as<T>() + i * H;
        const bool continues = i < step.next_active;
        const TokenBackward<T> token{
            .width = H,
            .gates = ranks.gates(row),
            .saved = in.saved + index * H,
            .h = in.previous_h + index * H,
            .c = step.index > 0 ? in.saved + (step.previous_first + i) * H
                                : ranks.state(in.initial_c, i),
            .d_out = p.d_out != nullptr ? p.d_out + row * p.d_out_stride : nullptr,
            .d_next_h = continues ? rank_carry_h : ranks.state(p.d_last_h, i),
            .d_next_c = continues ? rank_carry_c : ranks.state(p.d_last_c, i),
            .d_b = p.d_b + index * G * H,
            .carry_h = rank_carry_h,
            .carry_c = rank_carry_c};
        if (lstm) {
          lstm_token_backward(token);
        } else {
          gru_token_backward(token);
        }
      }
    });
    if (step.index == 0 && p.d_initial_h == nullptr) return;
    Product<T> product = in.product;
    product.m = padded_rows(step.active);
    product.a = p.d_b + step.first * G * H;
    product.c = carry_h.as<T>();
    product.accumulate = !lstm;
    multiply(ctx, product);
  });
  for (std::int64_t i = 0; i < in.plan.sentences; ++i) {
    const bool no_tokens = i >= first_active;
    copy_or_clear<T>(no_tokens ? ranks.state(p.d_last_h, i) : carry_h.as<T>() + i * H,
                     ranks.state(p.d_initial_h, i), H);
    copy_or_clear<T>(no_tokens ? ranks.state(p.d_last_c, i) : carry_c.as<T>() + i * H,
                     ranks.state(p.d_initial_c, i), H);
  }
  clear_rows(in.rows, G * H, in.gates_stride, in.gates);
  clear_rows(in.rows, G * H, G * H, p.d_b);
}
template void compute<Cpu<kIsa>>(CpuContext&, const RecurrenceBackward<float>&);

#if NUNCHI_F64_VERSION
template void compute<Cpu<kIsa>>(CpuContext&, const RecurrenceBackward<double>&);
#endif

}  // namespace nunchi::kernels
