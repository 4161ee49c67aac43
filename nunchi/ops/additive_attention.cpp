#include "nunchi/ops/additive_attention.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/kernels/additive_attention.h"
#include "nunchi/ops/check.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

constexpr const char* kName = "additive_attention";

// AdditiveHeads as tensors.
struct HeadTensors {
  Tensor q, k, v, score_vector;
};

HeadTensors tensors_of(const AdditiveHeads& heads) {
  return {heads.q.value(), heads.k.value(), heads.v.value(), heads.score_vector.value()};
}

void check_heads(const HeadTensors& heads) {
  const std::int64_t width = heads.score_vector.elements();
  check_shape(kName, "q", heads.q, {heads.q.size(0), width});
  check_shape(kName, "k", heads.k, {heads.v.size(0), width});
}

// The caller sets the fields that assign keys to queries.
template <class T>
kernels::AdditiveInputs<T> inputs_of(const HeadTensors& heads) {
  return {.width = heads.score_vector.elements(),
          .value_width = heads.v.size(1),
          .q = heads.q.data<T>(),
          .k = heads.k.data<T>(),
          .v = heads.v.data<T>(),
          .score_vector = heads.score_vector.data<T>(),
          .q_stride = heads.q.row_stride(),
          .k_stride = heads.k.row_stride(),
          .v_stride = heads.v.row_stride()};
}

template <class T>
kernels::AdditiveInputs<T> inputs_of(const HeadTensors& heads, const Ragged& queries,
                                     const Ragged& keys, const Tensor& begin, std::int64_t pairs) {
  kernels::AdditiveInputs<T> in = inputs_of<T>(heads);
  in.sentences = queries.sentences;
  in.max_queries = queries.max_length;
  in.max_keys = keys.max_length;
  in.query_key_pairs = pairs;
  in.q_offsets = queries.offsets.data<std::int32_t>();
  in.k_begin = keys.begin.data<std::int32_t>();
  in.k_length = keys.length.data<std::int32_t>();
  in.weight_offsets = begin.data<std::int64_t>();
  return in;
}

}  // namespace

AdditiveResult additive_attention(const AdditiveHeads& given, const Ragged& queries,
                                  const Ragged& keys) {
  const HeadTensors heads = tensors_of(given);
  check_heads(heads);
  check(queries.sentences == keys.sentences, kName,
        std::to_string(queries.sentences) + " sentences of queries but " +
            std::to_string(keys.sentences) + " of keys");
  check_shape(kName, "q", heads.q, {queries.capacity, heads.q.size(1)});
  check_shape(kName, "v", heads.v, {keys.capacity, heads.v.size(1)});
  ContextBase& context = heads.q.context();
  const DType dtype = heads.q.dtype();
  AttentionWeightsResult weights;
  std::int64_t pairs = 0;
  for (std::size_t b = 0; b < queries.lengths.size(); ++b) {
    weights.begin.push_back(pairs);
    pairs += std::int64_t{queries.lengths[b]} * keys.lengths[b];
  }
  const bool keep_weights =
      recording({given.q, given.k, given.v, given.score_vector}) || context.trace() != nullptr;
  if (keep_weights) weights.weights = Tensor::empty(context, accumulator_type(dtype), {pairs});
  const Tensor begin = from_host(context, weights.begin, {queries.sentences});
  const Tensor out = Tensor::empty(context, dtype, {queries.capacity, heads.v.size(1)});
  dispatch(out, [&]<class T>(auto& ctx) {
    kernels::run(ctx, kernels::AdditiveAttention<T>{
                          .in = inputs_of<T>(heads, queries, keys, begin, pairs),
                          .rows = rows_of(queries),
                          .out = out.data<T>(),
                          .out_stride = out.row_stride(),
                          .weights = keep_weights ? weights.weights.template data<Accumulator<T>>()
                                                  : nullptr});
  });
  const Variable result = record(
      kName, out, {given.q, given.k, given.v, given.score_vector},
      [heads, queries, keys, begin, weights = weights.weights](Gradients& gradients) {
        const Tensor& d_out = gradients.output();
        const GradientTarget d_q = gradients.target(0), d_k = gradients.target(1),
                             d_v = gradients.target(2);
        const Tensor d_score_vector =
            gradients.wanted(3)
                ? gradients.sum(3)
                : zeros(heads.q.context(), weights.dtype(), heads.score_vector.shape());
        dispatch(heads.q, [&]<class T>(auto& ctx) {
          kernels::run(ctx, kernels::AdditiveAttentionBackward<T>{
                                .in = inputs_of<T>(heads, queries, keys, begin, weights.elements()),
                                .rows = rows_of(queries),
                                .key_rows = rows_of(keys),
                                .weights = weights.data<Accumulator<T>>(),
                                .d_out = d_out.data<T>(),
                                .d_out_stride = d_out.row_stride(),
                                .d_q = d_q.tensor.data<T>(),
                                .d_k = d_k.tensor.data<T>(),
                                .d_v = d_v.tensor.data<T>(),
                                .d_q_stride = d_q.tensor.row_stride(),
                                .d_k_stride = d_k.tensor.row_stride(),
                                .d_v_stride = d_v.tensor.row_stride(),
                                .accumulate_q = d_q.accumulate,
                                .accumulate_k = d_k.accumulate,
                                .accumulate_v = d_v.accumulate,
                                .d_score_vector = d_score_vector.data<Accumulator<T>>()});
        });
      });
  return {result, weights};
}

Tensor additive_decode_attention(const AdditiveHeads& given, const Ragged& rows,
                                 const VisibleKeys& keys) {
  const HeadTensors heads = tensors_of(given);
  check_heads(heads);
  check_shape(kName, "q", heads.q, {rows.capacity, heads.q.size(1)});
  const Tensor out =
      Tensor::empty(heads.q.context(), heads.q.dtype(), {rows.capacity, heads.v.size(1)});
  dispatch(out, [&]<class T>(auto& ctx) {
    kernels::AdditiveInputs<T> in = inputs_of<T>(heads);
    in.sentences = rows.capacity;
    in.max_queries = 1;
    in.max_keys = keys.max_keys;
    in.query_key_pairs = rows.capacity * keys.max_keys;
    in.k_begin = keys.begin.data<std::int32_t>();
    in.k_length = keys.length.data<std::int32_t>();
    kernels::run(
        ctx,
        kernels::AdditiveAttention<T>{
            .in = in, .rows = rows_of(rows), .out = out.data<T>(), .out_stride = out.row_stride()});
  });
  return out;
}

}  // namespace nunchi
