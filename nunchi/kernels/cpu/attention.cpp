#include "nunchi/kernels/attention.h"

#include <cmath>
#include <limits>

#include "nunchi/kernels/cpu/attention_tiles.h"
#include "nunchi/kernels/cpu/parallel.h"
#include "nunchi/kernels/cpu/rows.h"
#include "nunchi/kernels/cpu/task_progress.h"
#include "nunchi/kernels/cpu/tile_product.h"

namespace nunchi::kernels {
namespace {

// A thread takes this many queries through all keys: their accumulators stay in the L2 cache, and
// each tile of keys is packed once for all of them.
constexpr std::int64_t kQueryChunk = 8 * kQueryTile;

// One thread's scratch memory.
template <class T>
struct Scratch {
  T *queries, *sums;   // [kQueryChunk, padded D] scaled queries, weighted sums of values so far
  T* keys;             // [D, kKeyTile]
  T* values;           // [kKeyTile, padded D]
  T* scores;           // [kQueryTile, kKeyTile]
  T* dropout_factors;  // [DropoutTile::kElements]
  T* highest;          // [kQueryChunk] the highest score so far
  T* total;            // [kQueryChunk, W] the sum of weights so far, one sum per lane

  static std::int64_t elements(std::int64_t head_width) {
    const std::int64_t padded_width = padded<T>(head_width);
    return 2 * kQueryChunk * padded_width + kKeyTile * head_width + kKeyTile * padded_width +
           kQueryTile * kKeyTile + DropoutTile<T>::kElements + kQueryChunk * (1 + kLanes<T>);
  }
  Scratch(T* from, std::int64_t head_width) {
    const std::int64_t padded_width = padded<T>(head_width);
    const auto take = [&from](std::int64_t count) { return std::exchange(from, from + count); };
    queries = take(kQueryChunk * padded_width);
    sums = take(kQueryChunk * padded_width);
    values = take(kKeyTile * padded_width);
    scores = take(kQueryTile * kKeyTile);
    keys = take(kKeyTile * head_width);
    dropout_factors = take(DropoutTile<T>::kElements);
    highest = take(kQueryChunk);
    total = take(kQueryChunk * kLanes<T>);
  }
};

// Online softmax of a tile: turns scores into weights relative to each row's highest score so far,
// and rescales the earlier sums to it. It first finds the highest scores of all rows and then the
// weights, so that no row waits for the row before it.
template <class T>
class OnlineSoftmax {
 public:
  OnlineSoftmax(const AttentionInputs<T>& in, const HeadView<T>& view, const Scratch<T>& scratch)
      : in_(in), view_(view), s_(scratch), width_(padded<T>(in.head_width)) {}

  // The tile has the chunk's rows i to i + rows - 1, which are the queries from `query` on, and
  // `count` keys from `key` on.
  void run(std::int64_t i, std::int64_t rows, std::int64_t query, std::int64_t key,
           std::int64_t count) const {
    const std::int64_t columns = padded<T>(count);
    const BiasByDistance<T> bias(in_, view_.head, query + view_.shift, key);
    T new_highest[kQueryTile];
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t visible = std::min(count, visible_keys(in_, view_, query + r) - key);
      new_highest[r] =
          larger(s_.highest[i + r],
                 highest_score(s_.scores + r * kKeyTile, bias.active() ? bias.row(r) : nullptr,
                               visible, columns));
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      T* scores = s_.scores + r * kKeyTile;
      // No visible key in this tile or before it.
      if (new_highest[r] == kLowest && visible_keys(in_, view_, query + r) <= key) {
        std::fill(scores, scores + columns, T(0));
      } else {
        to_weights(scores, new_highest[r], columns, i + r);
      }
    }
  }

 private:
  using V = Vec<T>;
  static constexpr T kLowest = -std::numeric_limits<T>::infinity();

  // Adds the bias, masks the scores and returns the highest one.
  static T highest_score(T* scores, const T* bias, std::int64_t visible, std::int64_t columns) {
    V highest = splat<V>(kLowest);
    for (std::int64_t j = 0; j < columns; j += kLanes<T>) {
      V score = load<V>(scores + j);
      if (bias != nullptr) score += load<V>(bias + j);
      if (visible < j + kLanes<T>) score = first_lanes<T>(score, visible - j, kLowest);
      if (bias != nullptr || visible < j + kLanes<T>) store<V>(scores + j, score);
      highest = larger(highest, score);
    }
    return max_of<T>(highest);
  }

  // Turns the scores of one row into weights and adds them to the row's total.
  void to_weights(T* scores, T new_highest, std::int64_t columns, std::int64_t row) const {
    V added{};
    for (std::int64_t j = 0; j < columns; j += kLanes<T>) {
      const V weight = exponential<V>(load<V>(scores + j) - new_highest);
      store<V>(scores + j, weight);
      added += weight;
    }
    T* total = s_.total + row * kLanes<T>;
    T& highest = s_.highest[row];
    if (new_highest != highest) {
      const T rescale = highest == kLowest ? T(0) : exponential<T>(highest - new_highest);
      T* sums = s_.sums + row * width_;
      for (std::int64_t d = 0; d < width_; d += kLanes<T>) {
        store<V>(sums + d, load<V>(sums + d) * rescale);
      }
      store<V>(total, load<V>(total) * rescale);
      highest = new_highest;
    }
    store<V>(total, load<V>(total) + added);
  }

  const AttentionInputs<T>& in_;
  const HeadView<T>& view_;
  const Scratch<T>& s_;
  std::int64_t width_;
};

// Queries [begin, end) of one head of one sentence.
template <class T>
void attend_chunk(const Attention<T>& p, const HeadView<T>& view, std::int64_t begin,
                  std::int64_t end, const Scratch<T>& s) {
  const AttentionInputs<T>& in = p.in;
  const std::int64_t width = in.head_width, padded_width = padded<T>(width), queries = end - begin;
  pack_rows<T>(queries, width, view.q + begin * in.q_stride, in.q_stride, static_cast<T>(in.scale),
               s.queries);
  std::fill(s.sums, s.sums + queries * padded_width, T(0));
  std::fill(s.highest, s.highest + queries, -std::numeric_limits<T>::infinity());
  std::fill(s.total, s.total + queries * kLanes<T>, T(0));
  const std::int64_t keys = visible_keys(in, view, end - 1);
  const OnlineSoftmax<T> softmax(in, view, s);
  DropoutTile<T> dropout(in, s.dropout_factors);
  for (std::int64_t key = 0; key < keys; key += kKeyTile) {
    const std::int64_t count = std::min(kKeyTile, view.keys - key), columns = padded<T>(count);
    pack_transposed<T>(count, width, view.k + key * in.k_stride, in.k_stride, s.keys);
    pack_rows<T>(count, width, view.v + key * in.v_stride, in.v_stride, T(1), s.values);
    for (std::int64_t i = 0; i < queries; i += kQueryTile) {
      const std::int64_t rows = std::min(kQueryTile, queries - i);
      if (visible_keys(in, view, begin + i + rows - 1) <= key) continue;
      tile_product<T>(rows, columns, width, {s.queries + i * padded_width, padded_width, 1}, s.keys,
                      kKeyTile, s.scores, kKeyTile, false);
      softmax.run(i, rows, begin + i, key, count);
      if (dropout.active()) {
        dropout.draw(in, view, begin + i, rows, key, columns);
        for (std::int64_t r = 0; r < rows; ++r) {
          T* weights = s.scores + r * kKeyTile;
          for (std::int64_t j = 0; j < columns; ++j) weights[j] *= dropout.row(r)[j];
        }
      }
      tile_product<T>(rows, padded_width, count, {s.scores, kKeyTile, 1}, s.values, padded_width,
                      s.sums + i * padded_width, padded_width, true);
    }
  }
  for (std::int64_t i = 0; i < queries; ++i) {
    const std::int64_t row = view.first_query + begin + i;
    const T total = sum_of<T>(load<Vec<T>>(s.total + i * kLanes<T>));
    const T inverse = total > T(0) ? T(1) / total : T(0);
    T* out = p.out + row * p.out_stride + view.head * width;
    for_each_vector<T>(width, [&]<class V>(std::int64_t d, V) {
      store<V>(out + d, load<V>(s.sums + i * padded_width + d) * inverse);
    });
    if (p.log_sum != nullptr) {
      p.log_sum[view.head * p.rows.capacity + row] =
          total > T(0) ? s.highest[i] + std::log(total) : T(0);
    }
  }
}

template <class T>
void attend(CpuContext& ctx, const Attention<T>& p) {
  const AttentionInputs<T>& in = p.in;
  const std::int64_t chunks = (in.max_queries + kQueryChunk - 1) / kQueryChunk;
  const std::int64_t scratch_elements = Scratch<T>::elements(in.head_width);
  const ScratchMemory memory(
      ctx.arena(), static_cast<std::size_t>(scratch_elements * ctx.threads()) * sizeof(T));
  T* scratch = memory.as<T>();
  const std::int64_t tasks = in.sentences * in.heads * chunks;
  TaskProgress progress(ctx, in.max_queries, tasks);
  const double nanoseconds =
      attention_nanoseconds(std::min(in.max_queries, kQueryChunk), in.max_keys, in.head_width);
  parallel_tasks(ctx, tasks, nanoseconds, [&](std::int64_t task, int thread) {
    // Later chunks of a causal sentence see more keys: the longest tasks start first.
    const std::int64_t chunk = chunks - 1 - task / (in.sentences * in.heads);
    const std::int64_t rest = task % (in.sentences * in.heads);
    const HeadView<T> view = head_view(in, rest / in.heads, static_cast<int>(rest % in.heads));
    const std::int64_t begin = chunk * kQueryChunk;
    const std::int64_t end = std::min(view.queries, begin + kQueryChunk);
    if (begin >= end) return;
    attend_chunk(p, view, begin, end,
                 Scratch<T>(scratch + thread * scratch_elements, in.head_width));
    progress.add_task();
  });
  for (std::int64_t row = count_of(p.rows); row < p.rows.capacity; ++row) {
    std::fill_n(p.out + row * p.out_stride, in.heads * in.head_width, T(0));
  }
}

template <class T>
void write_weights(CpuContext& ctx, const AttentionWeights<T>& p) {
  const AttentionInputs<T>& in = p.in;
  const double nanoseconds = attention_nanoseconds(in.max_queries, in.max_keys, in.head_width);
  parallel_tasks(ctx, in.sentences * in.heads, nanoseconds, [&](std::int64_t task, int) {
    const HeadView<T> view = head_view(in, task / in.heads, static_cast<int>(task % in.heads));
    T* out = p.weights + p.begin[view.sentence] + view.head * view.queries * view.keys;
    for (std::int64_t i = 0; i < view.queries; ++i, out += view.keys) {
      const std::int64_t visible = visible_keys(in, view, i);
      T max_score = -std::numeric_limits<T>::infinity(), total = 0;
      for (std::int64_t j = 0; j < visible; ++j) {
        RowSum<T> dot;
        for_each_vector<T>(in.head_width, [&]<class V>(std::int64_t d, V) {
          dot.add(load<V>(view.q + i * in.q_stride + d) * load<V>(view.k + j * in.k_stride + d));
        });
        out[j] = dot.total() * static_cast<T>(in.scale);
        const std::int64_t relative = j - (i + view.shift);
        if (in.bias.kind == ScoreBias<T>::Kind::slopes) {
          out[j] -= in.bias.slopes[view.head] * static_cast<T>(relative < 0 ? -relative : relative);
        } else if (in.bias.kind == ScoreBias<T>::Kind::buckets) {
          out[j] += in.bias.table[bucket_of(in.bias, relative) * in.heads + view.head];
        }
        max_score = larger(max_score, out[j]);
      }
      for (std::int64_t j = 0; j < visible; ++j)
        total += out[j] = exponential<T>(out[j] - max_score);
      for (std::int64_t j = 0; j < visible; ++j) out[j] /= total;
      for (std::int64_t j = visible; j < view.keys; ++j) out[j] = T(0);
    }
  });
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Attention<T>& p) {
  attend(ctx, with_starts(ctx, p));
}
template void compute<Cpu<kIsa>>(CpuContext&, const Attention<float>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const AttentionWeights<T>& p) {
  write_weights(ctx, with_starts(ctx, p));
}
template void compute<Cpu<kIsa>>(CpuContext&, const AttentionWeights<float>&);

#if NUNCHI_F64_VERSION
template void compute<Cpu<kIsa>>(CpuContext&, const Attention<double>&);
template void compute<Cpu<kIsa>>(CpuContext&, const AttentionWeights<double>&);
#endif

}  // namespace nunchi::kernels
