#include "nunchi/ops/decode/decode_attention.h"

#include "nunchi/kernels/decode_attention.h"
#include "nunchi/ops/attention_options.h"
#include "nunchi/ops/check.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

const std::int32_t* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.data<std::int32_t>() : nullptr;
}

kernels::VisibleKeys kernel_keys(const VisibleKeys& keys) {
  return {.slot = data_or_null(keys.slot),
          .hypothesis = data_or_null(keys.hypothesis),
          .slot_stride = keys.slot.defined() ? keys.slot.size(1) : 0,
          .begin = data_or_null(keys.begin),
          .length = data_or_null(keys.length)};
}

}  // namespace

Tensor decode_attention(const DecodeHeads& heads, const Ragged& rows, const VisibleKeys& keys,
                        const AttentionOptions& given, const NewKeys& newest) {
  const Tensor& q = heads.q;
  const AttentionOptions options = completed_options(given, q.size(1));
  const std::int64_t width = q.size(1) / options.heads;
  check_shape("decode_attention", "q", q, {rows.capacity, q.size(1)});
  check_shape("decode_attention", "k", heads.k, {heads.k.size(0), width * options.kv_heads});
  check_shape("decode_attention", "v", heads.v, heads.k.shape());
  const Tensor out = Tensor::empty(q.context(), q.dtype(), q.shape());
  if (newest.k.defined()) {
    check_shape("decode_attention", "the newest k", newest.k, {rows.capacity, heads.k.size(1)});
    check_shape("decode_attention", "the newest v", newest.v, newest.k.shape());
  }
  dispatch(q, [&]<class T>(auto& ctx) {
    kernels::NewKeys<T> added;
    if (newest.k.defined()) {
      added = {.slot = data_or_null(newest.slot),
               .k = newest.k.data<T>(),
               .v = newest.v.data<T>(),
               .k_stride = newest.k.row_stride(),
               .v_stride = newest.v.row_stride(),
               .to_k = heads.k.data<T>(),
               .to_v = heads.v.data<T>()};
    }
    kernels::run(ctx, kernels::DecodeAttention<T>{.rows = rows_of(rows),
                                                  .heads = options.heads,
                                                  .kv_heads = options.kv_heads,
                                                  .head_width = width,
                                                  .q = q.data<T>(),
                                                  .k = heads.k.data<T>(),
                                                  .v = heads.v.data<T>(),
                                                  .q_stride = q.row_stride(),
                                                  .k_stride = heads.k.row_stride(),
                                                  .v_stride = heads.v.row_stride(),
                                                  .keys = kernel_keys(keys),
                                                  .newest = added,
                                                  .max_keys = keys.max_keys,
                                                  .scale = options.scale,
                                                  .bias = kernel_bias<T>(options.bias),
                                                  .out = out.data<T>(),
                                                  .out_stride = out.row_stride()});
  });
  return out;
}

void scatter_rows(const Tensor& from, const Ragged& rows, const Tensor& index, const Tensor& to) {
  check(from.size(1) == to.size(1), "scatter_rows",
        "rows " + from.shape().to_string() + " do not fit " + to.shape().to_string());
  dispatch(from, [&]<class T>(auto& ctx) {
    kernels::run(ctx, kernels::ScatterRows<T>{.rows = rows_of(rows),
                                              .width = from.size(1),
                                              .index = data_or_null(index),
                                              .from = from.data<T>(),
                                              .from_stride = from.row_stride(),
                                              .to = to.data<T>(),
                                              .to_stride = to.row_stride()});
  });
}

Tensor gather_rows(const Tensor& from, const Ragged& rows, const Tensor& index) {
  const Tensor out = Tensor::empty(from.context(), from.dtype(), {rows.capacity, from.size(1)});
  dispatch(from, [&]<class T>(auto& ctx) {
    kernels::run(ctx, kernels::GatherRows<T>{.rows = rows_of(rows),
                                             .width = from.size(1),
                                             .index = index.data<std::int32_t>(),
                                             .from = from.data<T>(),
                                             .from_stride = from.row_stride(),
                                             .to = out.data<T>()});
  });
  return out;
}

}  // namespace nunchi
