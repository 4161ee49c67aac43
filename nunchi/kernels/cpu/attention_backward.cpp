#include <cmath>

#include "nunchi/kernels/attention.h"
#include "nunchi/kernels/cpu/attention_tiles.h"
#include "nunchi/kernels/cpu/parallel.h"
#include "nunchi/kernels/cpu/rows.h"
#include "nunchi/kernels/cpu/tile_product.h"

namespace nunchi::kernels {
namespace {

// One thread's scratch memory: the queries of a whole sentence and tiles of its keys.
template <class T>
struct Scratch {
  T *queries, *d_out, *d_queries;          // [max_queries, padded D]
  T* delta;                                // [max_queries] out · d_out of each query
  T* keys;                                 // [kKeyTile, padded D]
  T *keys_transposed, *values_transposed;  // [D, kKeyTile]
  T *d_keys, *d_values;                    // [kKeyTile, padded D]
  T *weights, *d_scores;                   // [kQueryTile, kKeyTile]
  T* dropout_factors;                      // [DropoutTile::kElements]
  T* d_bias;                               // [BiasByDistance::kLength]

  static std::int64_t elements(std::int64_t max_queries, std::int64_t head_width) {
    const std::int64_t padded_width = padded<T>(head_width);
    const std::int64_t total =
        max_queries * (3 * padded_width + 1) + kKeyTile * (3 * padded_width + 2 * head_width) +
        2 * kQueryTile * kKeyTile + DropoutTile<T>::kElements + BiasByDistance<T>::kLength;
    return padded<T>(total);  // each thread's scratch memory is aligned
  }
  Scratch(T* from, std::int64_t max_queries, std::int64_t head_width) {
    const std::int64_t padded_width = padded<T>(head_width);
    const auto take = [&from](std::int64_t count) { return std::exchange(from, from + count); };
    queries = take(max_queries * padded_width);
    d_out = take(max_queries * padded_width);
    d_queries = take(max_queries * padded_width);
    keys = take(kKeyTile * padded_width);
    d_keys = take(kKeyTile * padded_width);
    d_values = take(kKeyTile * padded_width);
    weights = take(kQueryTile * kKeyTile);
    d_scores = take(kQueryTile * kKeyTile);
    dropout_factors = take(DropoutTile<T>::kElements);
    keys_transposed = take(kKeyTile * head_width);
    values_transposed = take(kKeyTile * head_width);
    delta = take(max_queries);
    d_bias = take(BiasByDistance<T>::kLength);
  }
};

// to[r] = from[r] * factor, or += with `accumulate`. Rows of `from` are padded to the vector width.
template <class T>
void write_rows(std::int64_t rows, std::int64_t width, const T* from, T factor, T* to,
                std::int64_t stride, bool accumulate) {
  const std::int64_t padded_width = padded<T>(width);
  for (std::int64_t r = 0; r < rows; ++r) {
    for_each_vector<T>(width, [&]<class V>(std::int64_t i, V) {
      const V value = load<V>(from + r * padded_width + i) * factor;
      store<V>(to + r * stride + i, accumulate ? load<V>(to + r * stride + i) + value : value);
    });
  }
}

// The backward pass of one head of one sentence. Adds the head's gradient of the bias table to
// `d_table` [buckets]; null: not computed.
template <class T>
class HeadBackward {
 public:
  HeadBackward(const AttentionBackward<T>& p, const HeadView<T>& view, const Scratch<T>& scratch,
               double* d_table)
      : p_(p),
        in_(p.in),
        view_(view),
        s_(scratch),
        d_table_(d_table),
        width_(in_.head_width),
        padded_width_(padded<T>(width_)),
        dropout_(in_, s_.dropout_factors) {}

  // The heads that share a key/value head run one after another; the first of them overwrites d_k
  // and d_v unless they are accumulated, the others add to them.
  void run(bool first_of_group) {
    const std::int64_t head_column = view_.head * width_;
    const T* d_out = p_.d_out + view_.first_query * p_.d_out_stride + head_column;
    const T* out = p_.out + view_.first_query * p_.out_stride + head_column;
    pack_rows<T>(view_.queries, width_, view_.q, in_.q_stride, static_cast<T>(in_.scale),
                 s_.queries);
    pack_rows<T>(view_.queries, width_, d_out, p_.d_out_stride, T(1), s_.d_out);
    std::fill(s_.d_queries, s_.d_queries + view_.queries * padded_width_, T(0));
    for (std::int64_t i = 0; i < view_.queries; ++i) {
      RowSum<T> dot;
      for_each_vector<T>(width_, [&]<class V>(std::int64_t d, V) {
        dot.add(load<V>(out + i * p_.out_stride + d) * load<V>(s_.d_out + i * padded_width_ + d));
      });
      s_.delta[i] = dot.total();
    }
    const int kv_head = view_.head / (in_.heads / in_.kv_heads);
    for (std::int64_t key = 0; key < view_.keys; key += kKeyTile) {
      const std::int64_t count = std::min(kKeyTile, view_.keys - key);
      key_tile(key, count);
      const std::int64_t row = view_.first_key + key, column = kv_head * width_;
      write_rows<T>(count, width_, s_.d_keys, T(1), p_.d_k + row * p_.d_k_stride + column,
                    p_.d_k_stride, p_.accumulate_k || !first_of_group);
      write_rows<T>(count, width_, s_.d_values, T(1), p_.d_v + row * p_.d_v_stride + column,
                    p_.d_v_stride, p_.accumulate_v || !first_of_group);
    }
    write_rows<T>(view_.queries, width_, s_.d_queries, static_cast<T>(in_.scale),
                  p_.d_q + view_.first_query * p_.d_q_stride + head_column, p_.d_q_stride,
                  p_.accumulate_q);
  }

 private:
  void key_tile(std::int64_t key, std::int64_t count) {
    const T* k = view_.k + key * in_.k_stride;
    const T* v = view_.v + key * in_.v_stride;
    pack_rows<T>(count, width_, k, in_.k_stride, T(1), s_.keys);
    pack_transposed<T>(count, width_, k, in_.k_stride, s_.keys_transposed);
    pack_transposed<T>(count, width_, v, in_.v_stride, s_.values_transposed);
    std::fill(s_.d_keys, s_.d_keys + kKeyTile * padded_width_, T(0));
    std::fill(s_.d_values, s_.d_values + kKeyTile * padded_width_, T(0));
    for (std::int64_t i = 0; i < view_.queries; i += kQueryTile) {
      const std::int64_t rows = std::min(kQueryTile, view_.queries - i);
      if (visible_keys(in_, view_, i + rows - 1) > key) query_tile(i, rows, key, count);
    }
  }

  void query_tile(std::int64_t i, std::int64_t rows, std::int64_t key, std::int64_t count) {
    const std::int64_t columns = padded<T>(count);
    const T* queries = s_.queries + i * padded_width_;
    const T* d_out = s_.d_out + i * padded_width_;
    tile_product<T>(rows, columns, width_, {queries, padded_width_, 1}, s_.keys_transposed,
                    kKeyTile, s_.weights, kKeyTile, false);
    tile_product<T>(rows, columns, width_, {d_out, padded_width_, 1}, s_.values_transposed,
                    kKeyTile, s_.d_scores, kKeyTile, false);
    const BiasByDistance<T> bias(in_, view_.head, i + view_.shift, key);
    dropout_.draw(in_, view_, i, rows, key, columns);
    for (std::int64_t r = 0; r < rows; ++r) {
      score_gradient(i, r, std::min(count, visible_keys(in_, view_, i + r) - key), columns,
                     bias.active() ? bias.row(r) : nullptr);
    }
    if (d_table_ != nullptr) table_gradient(i, rows, key, count);
    tile_product<T>(count, padded_width_, rows, {s_.weights, 1, kKeyTile}, d_out, padded_width_,
                    s_.d_values, padded_width_, true);
    tile_product<T>(count, padded_width_, rows, {s_.d_scores, 1, kKeyTile}, queries, padded_width_,
                    s_.d_keys, padded_width_, true);
    tile_product<T>(rows, padded_width_, count, {s_.d_scores, kKeyTile, 1}, s_.keys, padded_width_,
                    s_.d_queries + i * padded_width_, padded_width_, true);
  }

  // For row r of a tile: replaces scores by weights (after dropout) and d_weights by d_scores.
  void score_gradient(std::int64_t i, std::int64_t r, std::int64_t visible, std::int64_t columns,
                      const T* bias) {
    using V = Vec<T>;
    const std::int64_t query = i + r;
    T* weights = s_.weights + r * kKeyTile;
    T* d_scores = s_.d_scores + r * kKeyTile;
    const T log_sum = p_.log_sum[view_.head * p_.rows.capacity + view_.first_query + query];
    const T delta = s_.delta[query];
    for (std::int64_t j = 0; j < columns; j += kLanes<T>) {
      V score = load<V>(weights + j) - log_sum;
      if (bias != nullptr) score += load<V>(bias + j);
      V weight = exponential<V>(score);
      if (visible < j + kLanes<T>) weight = first_lanes<T>(weight, visible - j, T(0));
      V d_weight = load<V>(d_scores + j);
      if (dropout_.active()) {
        const V factors = load<V>(dropout_.row(r) + j);
        d_weight *= factors;
        store<V>(weights + j, weight * factors);
      } else {
        store<V>(weights + j, weight);
      }
      store<V>(d_scores + j, weight * (d_weight - delta));
    }
  }

  void table_gradient(std::int64_t i, std::int64_t rows, std::int64_t key, std::int64_t count) {
    std::fill(s_.d_bias, s_.d_bias + BiasByDistance<T>::kLength, T(0));
    for (std::int64_t r = 0; r < rows; ++r) {
      T* d_bias = s_.d_bias + kQueryTile - 1 - r;
      for (std::int64_t j = 0; j < count; ++j) d_bias[j] += s_.d_scores[r * kKeyTile + j];
    }
    for (std::int64_t n = 0; n < BiasByDistance<T>::kLength; ++n) {
      const std::int64_t relative = key - (i + view_.shift) + n - (kQueryTile - 1);
      d_table_[bucket_of(in_.bias, relative)] += static_cast<double>(s_.d_bias[n]);
    }
  }

  const AttentionBackward<T>& p_;
  const AttentionInputs<T>& in_;
  const HeadView<T>& view_;
  const Scratch<T>& s_;
  double* d_table_;
  std::int64_t width_, padded_width_;
  DropoutTile<T> dropout_;
};

// Sets gradients of rows past the count to zero; accumulated gradients are zero there already.
template <class T>
void clear_tail(const Rows& rows, std::int64_t width, T* out, std::int64_t stride,
                bool accumulate) {
  if (accumulate) return;
  for (std::int64_t row = count_of(rows); row < rows.capacity; ++row) {
    std::fill_n(out + row * stride, width, T(0));
  }
}

template <class T>
void attend_backward(CpuContext& ctx, const AttentionBackward<T>& p) {
  const AttentionInputs<T>& in = p.in;
  const std::int64_t scratch_elements = Scratch<T>::elements(in.max_queries, in.head_width);
  const ScratchMemory memory(
      ctx.arena(), static_cast<std::size_t>(scratch_elements * ctx.threads()) * sizeof(T));
  T* scratch = memory.as<T>();
  // Each (sentence, head) has its own partial sum of the table's gradient; they are added in order.
  const std::int64_t tables = p.d_table != nullptr ? in.sentences * in.heads * in.bias.buckets : 0;
  const ScratchMemory table_memory(ctx.arena(), static_cast<std::size_t>(tables) * sizeof(double));
  double* d_tables = table_memory.as<double>();
  std::fill(d_tables, d_tables + tables, 0.0);
  const int group = in.heads / in.kv_heads;
  // The backward pass has five products for the two of the forward pass.
  const double nanoseconds =
      2.5 * group * attention_nanoseconds(in.max_queries, in.max_keys, in.head_width);
  parallel_tasks(ctx, in.sentences * in.kv_heads, nanoseconds, [&](std::int64_t task, int thread) {
    const std::int64_t sentence = task / in.kv_heads;
    const Scratch<T> thread_scratch(scratch + thread * scratch_elements, in.max_queries,
                                    in.head_width);
    for (int member = 0; member < group; ++member) {
      const int head = static_cast<int>(task % in.kv_heads) * group + member;
      const HeadView<T> view = head_view(in, sentence, head);
      double* d_table =
          tables > 0 ? d_tables + (sentence * in.heads + head) * in.bias.buckets : nullptr;
      HeadBackward<T>(p, view, thread_scratch, d_table).run(member == 0);
    }
  });
  for (std::int64_t index = 0; index < tables; ++index) {
    const std::int64_t bucket = index % in.bias.buckets, head = index / in.bias.buckets % in.heads;
    p.d_table[bucket * in.heads + head] += static_cast<T>(d_tables[index]);
  }
  const std::int64_t kv_width = in.kv_heads * in.head_width;
  clear_tail(p.rows, in.heads * in.head_width, p.d_q, p.d_q_stride, p.accumulate_q);
  clear_tail(p.key_rows, kv_width, p.d_k, p.d_k_stride, p.accumulate_k);
  clear_tail(p.key_rows, kv_width, p.d_v, p.d_v_stride, p.accumulate_v);
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const AttentionBackward<T>& p) {
  attend_backward(ctx, with_starts(ctx, p));
}
template void compute<Cpu<kIsa>>(CpuContext&, const AttentionBackward<float>&);

#if NUNCHI_F64_VERSION
template void compute<Cpu<kIsa>>(CpuContext&, const AttentionBackward<double>&);
#endif

}  // namespace nunchi::kernels
