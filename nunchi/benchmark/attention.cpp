#include "nunchi/benchmark/attention.h"

#include "nunchi/ops/attention.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi::benchmark {

AttentionBenchResult measure_attention(ContextBase& context, const AttentionBenchOptions& options) {
  const std::int64_t columns = options.heads * options.width;
  const std::int32_t lengths[] = {static_cast<std::int32_t>(options.length)};
  const Ragged rows = make_ragged(context, lengths);
  const DType type = compute_type(context);
  // q, k and v are slices of one projection, as in the layers.
  const Tensor qkv = random_tensor(context, {rows.capacity, 3 * columns});
  const Tensor d_out = random_tensor(context, {rows.capacity, columns});
  const Tensor d_qkv = Tensor::empty(context, type, qkv.shape());
  const Tensor out = Tensor::empty(context, type, d_out.shape());
  const Tensor log_sum =
      Tensor::empty(context, accumulator_type(type), {options.heads, rows.capacity});
  const double pairs = static_cast<double>(options.length) * static_cast<double>(options.length) *
                       (options.causal ? 0.5 : 1.0);
  AttentionBenchResult result;
  dispatch(qkv, [&]<class T>(auto& ctx) {
    const kernels::AttentionInputs<T> in{.sentences = 1,
                                         .heads = options.heads,
                                         .kv_heads = options.heads,
                                         .head_width = options.width,
                                         .max_queries = options.length,
                                         .max_keys = options.length,
                                         .q = qkv.data<T>(),
                                         .k = qkv.data<T>() + columns,
                                         .v = qkv.data<T>() + 2 * columns,
                                         .q_stride = 3 * columns,
                                         .k_stride = 3 * columns,
                                         .v_stride = 3 * columns,
                                         .q_offsets = rows.offsets.data<std::int32_t>(),
                                         .k_begin = rows.begin.data<std::int32_t>(),
                                         .k_length = rows.length.data<std::int32_t>(),
                                         .sentence = rows.sentence_index.data<std::int32_t>(),
                                         .causal = options.causal,
                                         .scale = 0.125,
                                         .score_pairs = pairs};
    const kernels::Attention<T> forward{.in = in,
                                        .rows = rows_of(rows),
                                        .out = out.data<T>(),
                                        .out_stride = columns,
                                        .log_sum = log_sum.data<Accumulator<T>>()};
    const kernels::AttentionBackward<T> backward{.in = in,
                                                 .rows = rows_of(rows),
                                                 .key_rows = rows_of(rows),
                                                 .out = out.data<T>(),
                                                 .d_out = d_out.data<T>(),
                                                 .out_stride = columns,
                                                 .d_out_stride = columns,
                                                 .log_sum = log_sum.data<Accumulator<T>>(),
                                                 .d_q = d_qkv.data<T>(),
                                                 .d_k = d_qkv.data<T>() + columns,
                                                 .d_v = d_qkv.data<T>() + 2 * columns,
                                                 .d_q_stride = 3 * columns,
                                                 .d_k_stride = 3 * columns,
                                                 .d_v_stride = 3 * columns};
    const double forward_seconds =
        median(timed(context, options.repeats, [&] { kernels::run(ctx, forward); }));
    const double backward_seconds =
        median(timed(context, options.repeats, [&] { kernels::run(ctx, backward); }));
    result.forward_ms = forward_seconds * 1e3;
    result.backward_ms = backward_seconds * 1e3;
    result.forward_gflops = forward.work().flops / forward_seconds / 1e9;
    result.backward_gflops = backward.work().flops / backward_seconds / 1e9;
  });
  result.arena_mib = static_cast<double>(context.arena().peak()) / (1 << 20);
  return result;
}

}  // namespace nunchi::benchmark
