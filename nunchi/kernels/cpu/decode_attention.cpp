#include "nunchi/kernels/decode_attention.h"

#include <algorithm>
#include <cstring>

#include "nunchi/kernels/cpu/attention_tiles.h"
#include "nunchi/kernels/cpu/isa_version.h"
#include "nunchi/kernels/cpu/parallel.h"
#include "nunchi/kernels/cpu/rows.h"
#include "nunchi/kernels/cpu/simd.h"

namespace nunchi::kernels::cpu {
namespace {

template <class T>
T dot(std::int64_t width, const T* a, const T* b) {
  RowSum<T> sum;
  over_row<T>(width, [&]<class V>(std::int64_t i, V) {
    if constexpr (std::is_same_v<V, T>) {
      sum.rest += a[i] * b[i];
    } else {
      sum.lanes = multiply_add(load<V>(a + i), load<V>(b + i), sum.lanes);
    }
  });
  return sum.total();
}

template <class T>
T score_bias(const ScoreBias<T>& bias, int heads, int head, std::int64_t relative) {
  using Kind = typename ScoreBias<T>::Kind;
  if (bias.kind == Kind::none) return T(0);
  if (bias.kind == Kind::slopes) {
    return -bias.slopes[head] * static_cast<T>(relative < 0 ? -relative : relative);
  }
  const int bucket = relative_bucket(relative, bias.buckets, bias.max_distance, bias.bidirectional);
  return bias.table[bucket * heads + head];
}

// scores[0:count] become weights that sum to one.
template <class T>
void softmax(std::int64_t count, T* scores) {
  RowMax<T> highest;
  over_row<T>(count, [&]<class V>(std::int64_t i, V) { highest.add(load<V>(scores + i)); });
  const T top = highest.total();
  RowSum<T> sum;
  over_row<T>(count, [&]<class V>(std::int64_t i, V) {
    const V e = exponential<V>(load<V>(scores + i) - top);
    store<V>(scores + i, e);
    sum.add(e);
  });
  const T inverse = T(1) / sum.total();
  over_row<T>(count, [&]<class V>(std::int64_t i, V) {
    store<V>(scores + i, load<V>(scores + i) * inverse);
  });
}

template <class T>
class DecodeRow {
 public:
  DecodeRow(const DecodeAttention<T>& p, T* scores) : p_(p), scores_(scores) {}

  void run(std::int64_t row) {
    const std::int64_t keys = p_.keys.length[row], width = p_.head_width;
    T* out = p_.out + row * p_.out_stride;
    std::fill_n(out, p_.heads * width, T(0));
    if (keys == 0) return;
    score(row, keys);
    for (int h = 0; h < p_.heads; ++h) softmax(keys, scores_ + h * p_.max_keys);
    over_keys(row, keys, [&](std::int64_t p, std::int64_t place) {
      const T* v = p_.v + place * p_.v_stride;
      for (int h = 0; h < p_.heads; ++h) {
        const T weight = scores_[h * p_.max_keys + p];
        const T* from = v + kv_head(h) * width;
        T* to = out + h * width;
        over_row<T>(width, [&]<class V>(std::int64_t i, V) {
          if constexpr (std::is_same_v<V, T>) {
            to[i] += weight * from[i];
          } else {
            store<V>(to + i, multiply_add(splat<V>(weight), load<V>(from + i), load<V>(to + i)));
          }
        });
      }
    });
  }

 private:
  int kv_head(int head) const { return head / (p_.heads / p_.kv_heads); }

  // f(position, row of k and v) for every key of a row.
  template <class F>
  void over_keys(std::int64_t row, std::int64_t keys, F&& f) const {
    if (p_.keys.slot == nullptr) {
      const std::int64_t begin = p_.keys.begin[row];
      for (std::int64_t p = 0; p < keys; ++p) f(p, begin + p);
      return;
    }
    const std::int32_t* slot = p_.keys.slot + p_.keys.hypothesis[row] * p_.keys.slot_stride;
    for (std::int64_t p = 0; p < keys; ++p) f(p, std::int64_t{slot[p]});
  }

  void score(std::int64_t row, std::int64_t keys) {
    const std::int64_t width = p_.head_width;
    const T* q = p_.q + row * p_.q_stride;
    const T scale = static_cast<T>(p_.scale);
    over_keys(row, keys, [&](std::int64_t p, std::int64_t place) {
      const T* k = p_.k + place * p_.k_stride;
      for (int h = 0; h < p_.heads; ++h) {
        scores_[h * p_.max_keys + p] = dot(width, q + h * width, k + kv_head(h) * width) * scale;
      }
    });
    if (p_.bias.kind == ScoreBias<T>::Kind::none) return;
    for (int h = 0; h < p_.heads; ++h) {
      for (std::int64_t p = 0; p < keys; ++p) {
        scores_[h * p_.max_keys + p] += score_bias(p_.bias, p_.heads, h, p - (keys - 1));
      }
    }
  }

  const DecodeAttention<T>& p_;
  T* scores_;  // [H, max_keys]
};

template <class T>
void decode_attention(CpuContext& ctx, const DecodeAttention<T>& p) {
  const std::int64_t count = count_of(p.rows), buffer = p.heads * p.max_keys;
  const ScratchMemory scratch(ctx.arena(),
                              static_cast<std::size_t>(ctx.threads() * buffer) * sizeof(T));
  // Threads are worth waking for some ten microseconds of work.
  constexpr std::int64_t kWorthIt = 1 << 15;
  const std::int64_t work = std::max<std::int64_t>(1, p.max_keys * p.heads * p.head_width);
  const std::int64_t grain = std::max<std::int64_t>(1, kWorthIt / work);
  parallel_ranges(ctx, count, grain, [&](std::int64_t begin, std::int64_t end) {
    DecodeRow<T> rows(p, scratch.as<T>() + omp_get_thread_num() * buffer);
    for (std::int64_t r = begin; r < end; ++r) rows.run(r);
  });
  for (std::int64_t r = count; r < p.rows.capacity; ++r) {
    std::fill_n(p.out + r * p.out_stride, p.heads * p.head_width, T(0));
  }
}

template <class T>
void scatter(CpuContext& ctx, const ScatterRows<T>& p) {
  constexpr std::int64_t kGrain = 64;
  parallel_ranges(ctx, count_of(p.rows), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      std::copy_n(p.from + r * p.from_stride, p.width, p.to + p.index[r] * p.to_stride);
    }
  });
}

template <class T>
void gather(CpuContext& ctx, const GatherRows<T>& p) {
  constexpr std::int64_t kGrain = 64;
  parallel_ranges(ctx, count_of(p.rows), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      std::copy_n(p.from + p.index[r] * p.from_stride, p.width, p.to + r * p.width);
    }
  });
  clear_tail(p.rows, p.width, p.to);
}

}  // namespace

template <>
void compute<kIsa>(CpuContext& ctx, const DecodeAttention<float>& p) {
  decode_attention(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const DecodeAttention<double>& p) {
  decode_attention(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const ScatterRows<float>& p) {
  scatter(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const ScatterRows<double>& p) {
  scatter(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const GatherRows<float>& p) {
  gather(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const GatherRows<double>& p) {
  gather(ctx, p);
}

}  // namespace nunchi::kernels::cpu
