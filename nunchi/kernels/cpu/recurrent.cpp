#include "nunchi/kernels/cpu/recurrent_common.h"

namespace nunchi::kernels {
namespace {

// Arguments of the forward pass of one token.
template <class T>
struct Token {
  std::int64_t width;
  T* gates;       // `a`; is overwritten with the activated gates
  const T* b;     // h · W_hhᵀ; null: h is zero
  const T* bias;  // b_hh
  const T* h;     // the state before the token
  const T* c;     // the cell state before the token; null: zero
  T* saved;       // as RecurrentInputs::saved
  T* out;         // h'
};

template <class T>
void lstm_token(const Token<T>& p) {
  const std::int64_t H = p.width;
  for_each_vector<T>(H, [&]<class V>(std::int64_t i, V) {
    const auto gate = [&](std::int64_t g) {
      const std::int64_t index = g * H + i;
      return load<V>(p.gates + index) + (load_or_zero<V>(p.b, index) + load<V>(p.bias + index));
    };
    const V in = logistic<V>(gate(0)), forget = logistic<V>(gate(1)),
            cell = hyperbolic_tangent<V>(gate(2)), output = logistic<V>(gate(3));
    const V c = forget * load_or_zero<V>(p.c, i) + in * cell;
    store<V>(p.gates + i, in);
    store<V>(p.gates + H + i, forget);
    store<V>(p.gates + 2 * H + i, cell);
    store<V>(p.gates + 3 * H + i, output);
    store<V>(p.saved + i, c);
    store<V>(p.out + i, output * hyperbolic_tangent<V>(c));
  });
}

template <class T>
void gru_token(const Token<T>& p) {
  const std::int64_t H = p.width;
  for_each_vector<T>(H, [&]<class V>(std::int64_t i, V) {
    const auto recurrent_term = [&](std::int64_t g) {
      return load_or_zero<V>(p.b, g * H + i) + load<V>(p.bias + g * H + i);
    };
    const V reset = logistic<V>(load<V>(p.gates + i) + recurrent_term(0)),
            update = logistic<V>(load<V>(p.gates + H + i) + recurrent_term(1)),
            b = recurrent_term(2),
            candidate = hyperbolic_tangent<V>(load<V>(p.gates + 2 * H + i) + reset * b);
    store<V>(p.gates + i, reset);
    store<V>(p.gates + H + i, update);
    store<V>(p.gates + 2 * H + i, candidate);
    store<V>(p.saved + i, b);
    store<V>(p.out + i, (T(1) - update) * candidate + update * load<V>(p.h + i));
  });
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Recurrence<T>& p) {
  const RecurrentInputs<T>& in = p.in;
  const std::int64_t H = in.width, G = gates_of(in.cell);
  const RankView<T> ranks{in};
  const std::int64_t first_active = in.plan.steps > 0 ? in.plan.active[0] : 0;
  const ScratchMemory products(
      ctx.arena(), static_cast<std::size_t>(padded_rows(first_active) * G * H) * sizeof(T));
  for (std::int64_t i = 0; i < in.plan.sentences; ++i) {
    const T *h = ranks.state(in.initial_h, i), *c = ranks.state(in.initial_c, i);
    if (i < first_active) {
      copy_or_clear(h, in.previous_h + i * H, H);
    } else {  // without a token the state does not change
      copy_or_clear(h, ranks.state(p.last_h, i), H);
      copy_or_clear(c, ranks.state(p.last_c, i), H);
    }
  }
  for_steps(in.plan, [&](const RecurrentStep& step) {
    T* const previous_h = in.previous_h + step.first * H;
    const bool from_zero = step.index == 0 && in.initial_h == nullptr;
    if (!from_zero) {
      Product<T> product = in.product;
      product.m = padded_rows(step.active);
      product.a = previous_h;
      product.c = products.as<T>();
      multiply(ctx, product);
    }
    parallel_ranges(ctx, step.active, row_grain(H), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t row = ranks.row(i, step.index);
        T* const out = p.out + row * p.out_stride;
        T* const saved = in.saved + (step.first + i) * H;
        const Token<T> token{.width = H,
                             .gates = ranks.gates(row),
                             .b = from_zero ? nullptr : products.as<T>() + i * G * H,
                             .bias = p.bias,
                             .h = previous_h + i * H,
                             .c = step.index > 0 ? in.saved + (step.previous_first + i) * H
                                                 : ranks.state(in.initial_c, i),
                             .saved = saved,
                             .out = out};
        if (in.cell == CellKind::lstm) {
          lstm_token(token);
        } else {
          gru_token(token);
        }
        if (i < step.next_active) {
          std::copy_n(out, H, previous_h + (step.active + i) * H);
        } else {
          if (p.last_h != nullptr) std::copy_n(out, H, ranks.state(p.last_h, i));
          if (p.last_c != nullptr) std::copy_n(saved, H, ranks.state(p.last_c, i));
        }
      }
    });
  });
  clear_rows(in.rows, H, p.out_stride, p.out);
  clear_rows(in.rows, H, H, in.previous_h);
}
template void compute<Cpu<kIsa>>(CpuContext&, const Recurrence<float>&);

#if NUNCHI_F64_VERSION
template void compute<Cpu<kIsa>>(CpuContext&, const Recurrence<double>&);
#endif

}  // namespace nunchi::kernels
