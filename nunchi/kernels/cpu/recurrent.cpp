#include "nunchi/kernels/cpu/recurrent_common.h"

namespace nunchi::kernels {
namespace {

// The forward pass of one sentence's token.
template <class T>
struct Token {
  std::int64_t width;
  T* gates;    // a, then overwritten with the gates
  const T* b;  // h · W_hhᵀ; null: h is zero
  const T* bias;
  const T* h;  // the state before the token
  const T* c;  // null: zero
  T* kept;
  T* out;
};

template <class T>
void lstm_token(const Token<T>& p) {
  const std::int64_t H = p.width;
  over_row<T>(H, [&]<class V>(std::int64_t i, V) {
    const auto gate = [&](std::int64_t g) {
      const std::int64_t at = g * H + i;
      return load<V>(p.gates + at) + (load_or_zero<V>(p.b, at) + load<V>(p.bias + at));
    };
    const V in = logistic<V>(gate(0)), forget = logistic<V>(gate(1)), cell = tangent<V>(gate(2)),
            open = logistic<V>(gate(3));
    const V c = forget * load_or_zero<V>(p.c, i) + in * cell;
    store<V>(p.gates + i, in);
    store<V>(p.gates + H + i, forget);
    store<V>(p.gates + 2 * H + i, cell);
    store<V>(p.gates + 3 * H + i, open);
    store<V>(p.kept + i, c);
    store<V>(p.out + i, open * tangent<V>(c));
  });
}

template <class T>
void gru_token(const Token<T>& p) {
  const std::int64_t H = p.width;
  over_row<T>(H, [&]<class V>(std::int64_t i, V) {
    const auto share = [&](std::int64_t g) {
      return load_or_zero<V>(p.b, g * H + i) + load<V>(p.bias + g * H + i);
    };
    const V reset = logistic<V>(load<V>(p.gates + i) + share(0)),
            update = logistic<V>(load<V>(p.gates + H + i) + share(1)), b = share(2),
            made = tangent<V>(load<V>(p.gates + 2 * H + i) + reset * b);
    store<V>(p.gates + i, reset);
    store<V>(p.gates + H + i, update);
    store<V>(p.gates + 2 * H + i, made);
    store<V>(p.kept + i, b);
    store<V>(p.out + i, (T(1) - update) * made + update * load<V>(p.h + i));
  });
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Recurrence<T>& p) {
  const RecurrentInputs<T>& in = p.in;
  const std::int64_t H = in.width, G = gates_of(in.cell);
  const RankView<T> ranks{in};
  const std::int64_t most = in.plan.steps > 0 ? in.plan.active[0] : 0;
  const ScratchMemory products(ctx.arena(),
                               static_cast<std::size_t>(padded_rows(most) * G * H) * sizeof(T));
  for (std::int64_t i = 0; i < in.plan.sentences; ++i) {
    const T *h = ranks.state(in.first_h, i), *c = ranks.state(in.first_c, i);
    if (i < most) {
      copy_or_clear(h, in.previous + i * H, H);
    } else {  // without a token the state does not change
      copy_or_clear(h, ranks.state(p.last_h, i), H);
      copy_or_clear(c, ranks.state(p.last_c, i), H);
    }
  }
  for_steps(in.plan, [&](const RecurrentStep& step) {
    T* const met = in.previous + step.first * H;
    const bool from_zero = step.token == 0 && in.first_h == nullptr;
    if (!from_zero) {
      Product<T> product = in.product;
      product.m = padded_rows(step.active);
      product.a = met;
      product.c = products.as<T>();
      multiply(ctx, product);
    }
    parallel_ranges(ctx, step.active, rows_each(H), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t row = ranks.row(i, step.token);
        T* const out = p.out + row * p.out_stride;
        T* const kept = in.kept + (step.first + i) * H;
        const Token<T> token{
            .width = H,
            .gates = ranks.gates(row),
            .b = from_zero ? nullptr : products.as<T>() + i * G * H,
            .bias = p.bias,
            .h = met + i * H,
            .c = step.token > 0 ? in.kept + (step.before + i) * H : ranks.state(in.first_c, i),
            .kept = kept,
            .out = out};
        if (in.cell == CellKind::lstm) {
          lstm_token(token);
        } else {
          gru_token(token);
        }
        if (i < step.next) {
          std::copy_n(out, H, met + (step.active + i) * H);
        } else {
          if (p.last_h != nullptr) std::copy_n(out, H, ranks.state(p.last_h, i));
          if (p.last_c != nullptr) std::copy_n(kept, H, ranks.state(p.last_c, i));
        }
      }
    });
  });
  clear_rows(in.rows, H, p.out_stride, p.out);
  clear_rows(in.rows, H, H, in.previous);
}
template void compute<Cpu<kIsa>>(CpuContext&, const Recurrence<float>&);
template void compute<Cpu<kIsa>>(CpuContext&, const Recurrence<double>&);

}  // namespace nunchi::kernels
