#include "nunchi/kernels/decode_attention.h"

#include <algorithm>
#include <cstring>

#include "nunchi/kernels/cpu/attention_tiles.h"
#include "nunchi/kernels/cpu/isa_version.h"
#include "nunchi/kernels/cpu/parallel.h"
#include "nunchi/kernels/cpu/rows.h"
#include "nunchi/kernels/cpu/simd.h"
#include "nunchi/kernels/cpu/task_progress.h"

namespace nunchi::kernels {
namespace {

// Sums the lanes of each of W vectors; lane r of the result is the sum of rows[r]. For half = W/2,
// W/4, …, 1, row i is interleaved with row i + half, and the lower and upper results are added.
template <class T>
[[gnu::always_inline]] inline Vec<T> sums_of_rows(Vec<T> (&rows)[kLanes<T>]) {
  constexpr int W = kLanes<T>;
  constexpr auto lanes = std::make_integer_sequence<int, W>{};
#pragma GCC unroll 4
  for (int half = W / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) {
      rows[i] = interleaved<false>(rows[i], rows[i + half], lanes) +
                interleaved<true>(rows[i], rows[i + half], lanes);
    }
  }
  return rows[0];
}

template <class T>
T score_bias(const ScoreBias<T>& bias, int heads, int head, std::int64_t relative) {
  using Kind = typename ScoreBias<T>::Kind;
  if (bias.kind == Kind::none) return T(0);
  if (bias.kind == Kind::slopes) {
    return -bias.slopes[head] * static_cast<T>(relative < 0 ? -relative : relative);
  }
  return bias.table[bucket_of(bias, relative) * heads + head];
}

// scores[0:count] become weights that sum to one.
template <class T>
void softmax(std::int64_t count, T* scores) {
  if (count == 0) return;
  RowMax<T> row_max;
  for_each_vector<T>(count, [&]<class V>(std::int64_t i, V) { row_max.add(load<V>(scores + i)); });
  const T max_score = row_max.total();
  RowSum<T> sum;
  for_each_vector<T>(count, [&]<class V>(std::int64_t i, V) {
    const V e = exponential<V>(load<V>(scores + i) - max_score);
    store<V>(scores + i, e);
    sum.add(e);
  });
  const T inverse = T(1) / sum.total();
  for_each_vector<T>(count, [&]<class V>(std::int64_t i, V) {
    store<V>(scores + i, load<V>(scores + i) * inverse);
  });
}

// The attention of one row. A head has `Vectors` vectors of W elements; 0: any head width.
template <class T, int Vectors>
class DecodeRow {
 public:
  DecodeRow(const DecodeAttention<T>& p, T* scores, std::int64_t* key_rows)
      : p_(p), scores_(scores), key_rows_(key_rows) {}

  void run(std::int64_t row) {
    const std::int64_t keys = p_.keys.length[row], width = p_.head_width;
    T* out = p_.out + row * p_.out_stride;
    find_keys(row, keys);
    for (int h = 0; h < p_.heads; ++h) {
      const std::int64_t column = h / (p_.heads / p_.kv_heads) * width;
      score(keys, p_.q + row * p_.q_stride + h * width, p_.k + column);
      if (p_.bias.kind != ScoreBias<T>::Kind::none) {
        for (std::int64_t p = 0; p < keys; ++p) {
          scores_[p] += score_bias(p_.bias, p_.heads, h, p - (keys - 1));
        }
      }
      softmax(keys, scores_);
      add_values(keys, p_.v + column, out + h * width);
    }
  }

 private:
  using V = Vec<T>;
  static constexpr int W = kLanes<T>;

  // Writes to key_rows_ which rows of k and v the row sees.
  void find_keys(std::int64_t row, std::int64_t keys) {
    const VisibleKeys& from = p_.keys;
    if (from.slot == nullptr) {
      for (std::int64_t p = 0; p < keys; ++p) key_rows_[p] = from.begin[row] + p;
      return;
    }
    const std::int64_t hypothesis = from.hypothesis != nullptr ? from.hypothesis[row] : row;
    const std::int32_t* slot = from.slot + hypothesis * from.slot_stride;
    for (std::int64_t p = 0; p < keys; ++p) key_rows_[p] = slot[p];
  }

  int vectors() const { return Vectors > 0 ? Vectors : static_cast<int>(p_.head_width / W); }

  // scores_[p] = q · k[p] * scale, W keys at a time.
  void score(std::int64_t keys, const T* q, const T* k) {
    const T scale = static_cast<T>(p_.scale);
    for (std::int64_t first = 0; first < keys; first += W) {
      const std::int64_t count = std::min<std::int64_t>(W, keys - first);
      V rows[W] = {};
      T rest[W] = {};
      for (std::int64_t j = 0; j < count; ++j) {
        const T* key = k + key_rows_[first + j] * p_.k_stride;
        V sum{};
        const auto add = [&](int i) {
          sum = multiply_add(load<V>(q + i * W), load<V>(key + i * W), sum);
        };
        if constexpr (Vectors > 0) {
#pragma GCC unroll 8
          for (int i = 0; i < Vectors; ++i) add(i);
        } else {
          for (int i = 0; i < vectors(); ++i) add(i);
        }
        rows[j] = sum;
        if constexpr (Vectors == 0) {
          for (std::int64_t i = vectors() * W; i < p_.head_width; ++i) rest[j] += q[i] * key[i];
        }
      }
      V scores = sums_of_rows<T>(rows);
      if constexpr (Vectors == 0) scores += load<V>(rest);
      store<V>(scores_ + first, scores * scale);
    }
  }

  // out = Σ scores_[p] · v[p]; with a known head width the sums stay in registers.
  void add_values(std::int64_t keys, const T* v, T* out) const {
    if constexpr (Vectors > 0) {
      V sums[Vectors] = {};
      for (std::int64_t p = 0; p < keys; ++p) {
        const T* value = v + key_rows_[p] * p_.v_stride;
        const V weight = splat<V>(scores_[p]);
#pragma GCC unroll 8
        for (int i = 0; i < Vectors; ++i) {
          sums[i] = multiply_add(weight, load<V>(value + i * W), sums[i]);
        }
      }
#pragma GCC unroll 8
      for (int i = 0; i < Vectors; ++i) store<V>(out + i * W, sums[i]);
    } else {
      std::fill_n(out, p_.head_width, T(0));
      for (std::int64_t p = 0; p < keys; ++p) {
        const T* value = v + key_rows_[p] * p_.v_stride;
        for (std::int64_t i = 0; i < p_.head_width; ++i) out[i] += scores_[p] * value[i];
      }
    }
  }

  const DecodeAttention<T>& p_;
  T* scores_;               // [max_keys + W]
  std::int64_t* key_rows_;  // [max_keys]
};

template <int Vectors, class T>
void decode_rows(CpuContext& ctx, const DecodeAttention<T>& p) {
  const std::int64_t keys = p.max_keys + kLanes<T>;
  const auto threads = static_cast<std::size_t>(ctx.threads());
  const auto buffer = static_cast<std::size_t>(keys);
  const ScratchMemory scores(ctx.arena(), threads * buffer * sizeof(T));
  const ScratchMemory key_rows(ctx.arena(), threads * buffer * sizeof(std::int64_t));
  // Waking a thread pays off for about ten microseconds of work.
  constexpr std::int64_t kMinWork = 1 << 16;
  const std::int64_t work_per_row = keys * p.heads * p.head_width;
  const std::int64_t grain = std::max<std::int64_t>(1, kMinWork / work_per_row);
  TaskProgress progress(ctx, count_of(p.rows), count_of(p.rows));
  parallel_ranges(ctx, count_of(p.rows), grain, [&](std::int64_t begin, std::int64_t end) {
    const auto thread = static_cast<std::size_t>(omp_get_thread_num());
    DecodeRow<T, Vectors> rows(p, scores.as<T>() + thread * buffer,
                               key_rows.as<std::int64_t>() + thread * buffer);
    for (std::int64_t r = begin; r < end; ++r) {
      rows.run(r);
      progress.add_task();
    }
  });
}

template <class T>
void decode_attention(CpuContext& ctx, const DecodeAttention<T>& p) {
  constexpr std::int64_t W = kLanes<T>;
  switch (p.head_width % W == 0 ? p.head_width / W : 0) {
    case 1:
      decode_rows<1>(ctx, p);
      break;
    case 2:
      decode_rows<2>(ctx, p);
      break;
    case 4:
      decode_rows<4>(ctx, p);
      break;
    case 8:
      decode_rows<8>(ctx, p);
      break;
    default:
      decode_rows<0>(ctx, p);
  }
  for (std::int64_t r = count_of(p.rows); r < p.rows.capacity; ++r) {
    std::fill_n(p.out + r * p.out_stride, p.heads * p.head_width, T(0));
  }
}

template <class T>
void scatter(CpuContext& ctx, const ScatterRows<T>& p) {
  constexpr std::int64_t kGrain = 64;
  parallel_ranges(ctx, count_of(p.rows), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      T* to = p.to + (p.index != nullptr ? p.index[r] : r) * p.to_stride;
      std::copy_n(p.from + r * p.from_stride, p.width, to);
    }
  });
}

// Adds the newest keys and values to the cache.
template <class T>
void add_newest(CpuContext& ctx, const DecodeAttention<T>& p) {
  const NewKeys<T>& n = p.newest;
  if (n.k == nullptr) return;
  const std::int64_t width = p.kv_heads * p.head_width;
  scatter(ctx, ScatterRows<T>{.rows = p.rows,
                              .width = width,
                              .index = n.slot,
                              .from = n.k,
                              .from_stride = n.k_stride,
                              .to = n.to_k,
                              .to_stride = p.k_stride});
  scatter(ctx, ScatterRows<T>{.rows = p.rows,
                              .width = width,
                              .index = n.slot,
                              .from = n.v,
                              .from_stride = n.v_stride,
                              .to = n.to_v,
                              .to_stride = p.v_stride});
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const DecodeAttention<T>& p) {
  DecodeAttention<T> with_bias = p;
  with_bias.bias = with_starts(ctx, p.bias);
  add_newest(ctx, p);
  decode_attention(ctx, with_bias);
}
template void compute<Cpu<kIsa>>(CpuContext&, const DecodeAttention<float>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ScatterRows<T>& p) {
  scatter(ctx, p);
}
template void compute<Cpu<kIsa>>(CpuContext&, const ScatterRows<float>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const GatherRows<T>& p) {
  constexpr std::int64_t kGrain = 64;
  parallel_ranges(ctx, count_of(p.rows), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      std::copy_n(p.from + p.index[r] * p.from_stride, p.width, p.to + r * p.width);
    }
  });
  clear_tail(p.rows, p.width, p.to);
}
template void compute<Cpu<kIsa>>(CpuContext&, const GatherRows<float>&);

#if NUNCHI_F64_VERSION
template void compute<Cpu<kIsa>>(CpuContext&, const DecodeAttention<double>&);
template void compute<Cpu<kIsa>>(CpuContext&, const ScatterRows<double>&);
template void compute<Cpu<kIsa>>(CpuContext&, const GatherRows<double>&);
#endif

}  // namespace nunchi::kernels
