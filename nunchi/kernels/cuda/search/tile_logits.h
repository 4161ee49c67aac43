// A tile of logits: 64 rows in the registers of four warps, which find the keys and the summary
// that merge_row() needs of each row's chunk.
//
// Four lanes hold a row. Their columns are divided into groups; at least `kept` logits, and seldom
// many more, reach the kept-th highest of the groups' maxima.
#pragma once

#include "nunchi/kernels/cuda/common/mma.h"
#include "nunchi/kernels/cuda/common/wgmma.h"
#include "nunchi/kernels/cuda/search/lane_sort.h"
#include "nunchi/kernels/cuda/search/vocabulary_chunks.h"

namespace nunchi::kernels {

struct TilePosition {
  int first_row, rows;  // rows past these are not written
  int chunk, first_column, columns;
  int suppressed_token;  // banned: counts only in the sums
};

// if (logit >= least) *to++ = key, without a branch.
__device__ inline void store_if_reached(Key*& to, float logit, float least, Key key) {
  asm volatile(
      "{\n"
      " .reg .pred reached;\n"
      " .reg .u32 step;\n"
      " .reg .u64 wide_step;\n"
      " setp.ge.f32 reached, %1, %2;\n"
      " @reached st.global.b64 [%0], %3;\n"
      " selp.u32 step, 8, 0, reached;\n"
      " cvt.u64.u32 wide_step, step;\n"
      " add.u64 %0, %0, wide_step;\n"
      "}"
      : "+l"(to)
      : "f"(logit), "f"(least), "l"(key)
      : "memory");
}

template <int Columns>
class TileLogits {
 public:
  static constexpr int kMaxKept = 4 * 4;  // the number of groups of a row

  // Starts to add the products over 64 elements of K; if `first`, they overwrite the sums.
  __device__ void add(std::uint32_t x, std::uint32_t table, bool first) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      wgmma(value_, wgmma_descriptor(x) + 2 * i, wgmma_descriptor(table) + 2 * i, i > 0 || !first);
    }
    wgmma_commit();
  }

  // Waits until the products are added. Sums must not be read earlier.
  __device__ void wait() {
    wgmma_wait();
#pragma unroll
    for (float& sum : value_) asm volatile("" : "+f"(sum)::"memory");
  }

  // Writes the summaries and keys of the tile's rows, when all products are added.
  __device__ void find(const TilePosition& at, const VocabularyChunks& to) {
    if (at.rows <= first_row()) return;  // this warp has none of the rows
    if (at.columns < Columns) drop([&](int column) { return column >= at.columns; });
    float groups[2][kGroups], sum[2], max_logit[2];
    find_tops(groups);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      max_logit[h] = quad_max(highest(groups[h]));
      const float shift = -shift_of(max_logit[h]) * kLog2E;
      sum[h] = 0;
      // About 20 bits are exact, enough for a sum over the vocabulary.
      each_value(h, [&](float x, int) { sum[h] += fast_exp2(fmaf(x, kLog2E, shift)); });
      // Makes up for the rounding of the shift.
      sum[h] *= fast_exp2(-fmaf(shift_of(max_logit[h]), kLog2E, shift));
      sum[h] = quad_sum(sum[h]);
    }
    const int suppressed_at = at.suppressed_token - at.first_column;
    const bool has_suppressed = suppressed_at >= 0 && suppressed_at < at.columns;
    if (has_suppressed) {
      drop([&](int column) { return column == suppressed_at; });
      find_tops(groups);
    }
    const int wanted = min(to.kept, at.columns - (has_suppressed ? 1 : 0));
    bool slow = false;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = first_row() + lane_of_thread() / 4 + 8 * h;
      const std::int64_t here = std::int64_t{at.first_row + row} * to.per_row + at.chunk;
      const float best = quad_max(highest(groups[h]));
      const float least = least_of(groups[h], to.kept);
      const int count = keep(at, to, h, here, row < at.rows ? least : NAN);
      if (row >= at.rows) continue;
      if (quad_lane() == 0) {
        to.summaries[here] = {
            .max_logit = max_logit[h], .sum = sum[h], .best = order_of(best), .count = count};
      }
      // There may be too many equal logits, or too few logits if some are NaN, which reach no
      // threshold.
      slow = slow || count < wanted || count > to.capacity;
    }
    if (!__any_sync(kAllLanes, slow)) return;
    __syncwarp();  // keys are overwritten
    find_one_by_one(at, to,
                    [&](int column) { return column < at.columns && column != suppressed_at; });
  }

 private:
  static constexpr int kBlocks = Columns / 8;
  static constexpr int kGroups = kMaxKept / 4;  // per lane

  __device__ static int quad_lane() { return lane_of_thread() % 4; }
  // The warp's first row in the tile.
  __device__ static int first_row() {
    return static_cast<int>(threadIdx.x) / kWarp % kWgmmaWarps * 16;
  }
  __device__ static int column_of(int block, int e) { return 8 * block + 2 * quad_lane() + e; }

  // Calls f(logit, column) for this lane's elements of its first (h = 0) or second row.
  template <class F>
  __device__ void each_value(int h, F&& f) const {
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) f(value_[4 * j + 2 * h + e], column_of(j, e));
    }
  }
  // Sets the columns for which which(column) is true to -infinity.
  template <class Which>
  __device__ void drop(Which&& which) {
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        if (which(column_of(j, e))) value_[4 * j + e] = value_[4 * j + 2 + e] = -INFINITY;
      }
    }
  }
  __device__ void find_tops(float (&groups)[2][kGroups]) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int i = 0; i < kGroups; ++i) {
        groups[h][i] = -INFINITY;
#pragma unroll
        for (int n = 0; n < 2 * kBlocks / kGroups; ++n) {
          const int j = i * kBlocks / kGroups + n / 2;
          groups[h][i] = fmaxf(groups[h][i], value_[4 * j + 2 * h + n % 2]);
        }
      }
    }
  }
  __device__ static float highest(const float (&x)[kGroups]) {
    return fmaxf(fmaxf(x[0], x[1]), fmaxf(x[2], x[3]));
  }

  // The kept-th highest of a row's group maxima; NaN, which no logit reaches, if there are fewer.
  __device__ static float least_of(float (&groups)[kGroups], int kept) {
    sort_descending<4>(groups);
    const int i = (kept - 1) % kGroups;
    const float low = i % 2 != 0 ? groups[1] : groups[0], high = i % 2 != 0 ? groups[3] : groups[2];
    const float least = __shfl_sync(kAllLanes, i / 2 != 0 ? high : low,
                                    lane_of_thread() - quad_lane() + (kept - 1) / kGroups);
    return least > -INFINITY ? least : NAN;
  }

  // Writes the keys of the logits that reach the threshold, if they fit, and returns their number.
  __device__ int keep(const TilePosition& at, const VocabularyChunks& to, int h, std::int64_t here,
                      float least) const {
    int own = 0;
    each_value(h, [&](float x, int) { own += x >= least ? 1 : 0; });
    int up_to_own = own;
#pragma unroll
    for (int lanes = 1; lanes <= 2; lanes *= 2) {
      const int left = __shfl_up_sync(kAllLanes, up_to_own, lanes);
      if (quad_lane() >= lanes) up_to_own += left;
    }
    const int all = __shfl_sync(kAllLanes, up_to_own, lane_of_thread() | 3);
    Key* next = to.keys + here * to.capacity + up_to_own - own;
    if (all > to.capacity) least = NAN;
    // Recomputed for each row, to save the registers of all columns' ids.
    int first = at.first_column;
    asm volatile("" : "+r"(first));
    each_value(h, [&](float x, int column) {
      store_if_reached(next, x, least, number_key(x, first + column));
    });
    return all;
  }

  template <class Comes>
  __device__ void find_one_by_one(const TilePosition& at, const VocabularyChunks& to,
                                  Comes&& comes) const {
#pragma unroll 1
    for (int h = 0; h < 2; ++h) {
      const int row = first_row() + lane_of_thread() / 4 + 8 * h;
      const std::int64_t here = std::int64_t{at.first_row + row} * to.per_row + at.chunk;
      Key limit = ~Key{0};
      for (int rank = 0; rank < to.kept; ++rank) {
        Key best = 0;
#pragma unroll
        for (int i = 0; i < 4 * kBlocks; i += 4) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const int column = column_of(i / 4, e);
            float x = h == 0 ? value_[i + e] : value_[i + 2 + e];
            // Keeps the compiler from computing keys early, which would take registers.
            asm volatile("" : "+f"(x));
            const Key key = comes(column) ? key_of(x, at.first_column + column) : 0;
            if (key < limit) best = max(best, key);
          }
        }
        limit = quad_max(best);
        if (quad_lane() != 0 || row >= at.rows) continue;
        to.keys[here * to.capacity + rank] = limit;
        if (rank > 0) continue;
        to.summaries[here].best = static_cast<std::uint32_t>(limit >> 32);
        to.summaries[here].count = to.kept;
      }
    }
  }

  // Of each eight columns: two of the lane's first row, then two of its second.
  float value_[Columns / 2];
};

}  // namespace nunchi::kernels
