#include "nunchi/ops/attention.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/ops/attention_options.h"
#include "nunchi/ops/check.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

template <class T>
kernels::AttentionInputs<T> inputs_of(const Tensor& q, const Tensor& k, const Tensor& v,
                                      const Ragged& queries, const Ragged& keys,
                                      const AttentionOptions& options,
                                      const kernels::Dropout& dropout) {
  double pairs = 0;
  for (std::size_t b = 0; b < queries.lengths.size(); ++b) {
    pairs += static_cast<double>(queries.lengths[b]) * keys.lengths[b];
  }
  return {.sentences = queries.sentences,
          .heads = options.heads,
          .kv_heads = options.kv_heads,
          .head_width = q.size(1) / options.heads,
          .max_queries = queries.max_length,
          .max_keys = keys.max_length,
          .q = q.data<T>(),
          .k = k.data<T>(),
          .v = v.data<T>(),
          .q_stride = q.row_stride(),
          .k_stride = k.row_stride(),
          .v_stride = v.row_stride(),
          .q_offsets = queries.offsets.data<std::int32_t>(),
          .k_begin = keys.begin.data<std::int32_t>(),
          .k_length = keys.length.data<std::int32_t>(),
          .sentence = queries.sentence_index.data<std::int32_t>(),
          .causal = options.causal,
          .scale = options.scale,
          .bias = kernel_bias<T>(options.bias),
          .dropout = dropout,
          .score_pairs = options.causal ? pairs / 2 : pairs};
}

void check_inputs(const Tensor& q, const Tensor& k, const Ragged& queries, const Ragged& keys,
                  const AttentionOptions& options) {
  check(queries.sentences == keys.sentences, "attention",
        std::to_string(queries.sentences) + " sentences of queries but " +
            std::to_string(keys.sentences) + " of keys");
  check_shape("attention", "q", q, {queries.capacity, q.size(1)});
  check_shape("attention", "k", k, {keys.capacity, q.size(1) / options.heads * options.kv_heads});
}

}  // namespace

Variable attention(const Variable& q, const Variable& k, const Variable& v, const Ragged& queries,
                   const Ragged& keys, const AttentionOptions& given) {
  const AttentionOptions options = completed_options(given, q.value().size(1));
  check_inputs(q.value(), k.value(), queries, keys, options);
  check_shape("attention", "v", v.value(), k.value().shape());
  ContextBase& context = q.value().context();
  const DType dtype = q.value().dtype();
  const kernels::Dropout kernel_dropout = dropout_on(context, options.dropout);
  const Variable& table = options.bias.table;
  const bool recorded = recording({q, k, v, table});

  const Tensor out = Tensor::empty(context, dtype, q.value().shape());
  const Tensor log_sum =
      recorded ? Tensor::empty(context, accumulator_type(dtype), {options.heads, queries.capacity})
               : Tensor();
  dispatch(out, [&]<class T>(auto& ctx) {
    kernels::run(ctx, kernels::Attention<T>{
                          .in = inputs_of<T>(q.value(), k.value(), v.value(), queries, keys,
                                             options, kernel_dropout),
                          .rows = rows_of(queries),
                          .out = out.data<T>(),
                          .out_stride = out.row_stride(),
                          .log_sum = log_sum.defined() ? log_sum.data<Accumulator<T>>() : nullptr});
  });
  return record(
      "attention", out, {q, k, v, table},
      [q = q.value(), k = k.value(), v = v.value(), queries, keys, options, kernel_dropout, out,
       log_sum](Gradients& gradients) {
        const Tensor& d_out = gradients.output();
        const GradientTarget d_q = gradients.target(0), d_k = gradients.target(1),
                             d_v = gradients.target(2);
        dispatch(out, [&]<class T>(auto& ctx) {
          kernels::run(ctx, kernels::AttentionBackward<T>{
                                .in = inputs_of<T>(q, k, v, queries, keys, options, kernel_dropout),
                                .rows = rows_of(queries),
                                .key_rows = rows_of(keys),
                                .out = out.data<T>(),
                                .d_out = d_out.data<T>(),
                                .out_stride = out.row_stride(),
                                .d_out_stride = d_out.row_stride(),
                                .log_sum = log_sum.data<Accumulator<T>>(),
                                .d_q = d_q.tensor.data<T>(),
                                .d_k = d_k.tensor.data<T>(),
                                .d_v = d_v.tensor.data<T>(),
                                .d_q_stride = d_q.tensor.row_stride(),
                                .d_k_stride = d_k.tensor.row_stride(),
                                .d_v_stride = d_v.tensor.row_stride(),
                                .accumulate_q = d_q.accumulate,
                                .accumulate_k = d_k.accumulate,
                                .accumulate_v = d_v.accumulate,
                                .d_table = gradients.wanted(3)
                                               ? gradients.sum(3).template data<Accumulator<T>>()
                                               : nullptr});
        });
      });
}

AttentionWeightsResult attention_weights(const Tensor& q, const Tensor& k, const Ragged& queries,
                                         const Ragged& keys, const AttentionOptions& given) {
  const AttentionOptions options = completed_options(given, q.size(1));
  check_inputs(q, k, queries, keys, options);
  AttentionWeightsResult result;
  std::int64_t elements = 0;
  for (std::size_t b = 0; b < queries.lengths.size(); ++b) {
    result.begin.push_back(elements);
    elements += std::int64_t{options.heads} * queries.lengths[b] * keys.lengths[b];
  }
  result.weights = Tensor::empty(q.context(), accumulator_type(q.dtype()), {elements});
  const Tensor begin = from_host(q.context(), result.begin, {queries.sentences});
  dispatch(q, [&]<class T>(auto& ctx) {
    kernels::run(
        ctx, kernels::AttentionWeights<T>{.in = inputs_of<T>(q, k, k, queries, keys, options, {}),
                                          .begin = begin.data<std::int64_t>(),
                                          .weights = result.weights.data<Accumulator<T>>()});
  });
  return result;
}

}  // namespace nunchi
