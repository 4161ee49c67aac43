// What was found in the stretches of rows of logits, and how it becomes what the rows have.
#pragma once

#include "nunchi/kernels/cuda/bans.h"
#include "nunchi/kernels/cuda/logits.h"

namespace nunchi::kernels::cuda {

struct Stretches {
  int each = 1;           // stretches of a row
  int kept = 1;           // keys of a stretch
  Key* keys = nullptr;    // [R, each, kept] descending, 0 where there are fewer
  float* tops = nullptr;  // [R, each] the highest logits
  float* sums = nullptr;  // [R, each] Σ exp(x - shift_of(top))
};

struct Merge {
  Stretches from;
  int rows, count;       // count <= kept
  const double* banned;  // [R] as in TopTokens, or null
  // Bans of tokens that may still be among the keys: a stretch has kept so many more, or all.
  bool bans;
  BanRules rules;
  float* log_probs;   // [R, count]
  std::int32_t* ids;  // [R, count]
};

// A row's keys, by a warp: each lane looks at every 32nd stretch. What comes next of its first few
// stays in registers, so that taking one waits for one load at most.
class RowKeys {
 public:
  __device__ RowKeys(const Stretches& from, std::int64_t row)
      : keys_(from.keys + row * from.each * from.kept), each_(from.each), kept_(from.kept) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const int s = lane() + i * kWarp;
      next_[i] = s < each_ ? keys_[s * kept_] : 0;
    }
    find_best();
    for (int s = lane() + kHeld * kWarp; s < each_; s += kWarp) own_ = max(own_, keys_[s * kept_]);
  }

  // The highest of those that were not taken, in all lanes; 0: none is left.
  __device__ Key take() {
    const Key best = warp_max(own_);
    if (own_ == best && best != 0) find_below(best);
    return best;
  }

 private:
  static constexpr int kHeld = 8;  // stretches of a lane

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
  __device__ void find_best() {
    own_ = 0;
#pragma unroll
    for (int i = 0; i < kHeld; ++i) own_ = max(own_, next_[i]);
  }
  __device__ void find_below(Key limit) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      if (next_[i] != limit) continue;
      ++taken_[i];
      next_[i] = taken_[i] < kept_ ? keys_[(lane() + i * kWarp) * kept_ + taken_[i]] : 0;
    }
    find_best();
    for (int s = lane() + kHeld * kWarp; s < each_; s += kWarp) {
      own_ = max(own_, below(keys_ + s * kept_, limit));
    }
  }
  // The highest of a stretch's below what was taken last.
  __device__ Key below(const Key* keys, Key limit) const {
    if (keys[0] < limit) return keys[0];  // of most nothing was taken
    int begin = 1, end = kept_;
    while (begin < end) {
      const int middle = (begin + end) / 2;
      if (keys[middle] < limit) {
        end = middle;
      } else {
        begin = middle + 1;
      }
    }
    return begin < kept_ ? keys[begin] : 0;
  }

  const Key* keys_;
  int each_, kept_;
  Key next_[kHeld];
  int taken_[kHeld] = {};
  Key own_ = 0;
};

// Writes what a row has, by a warp; keep(rank, log-probability, id) is told, too, by one lane.
template <class Keep>
__device__ void merge_row(const Merge& p, int r, Keep&& keep) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  RowKeys keys(p.from, r);
  Ban ban;
  if (p.bans && r < p.rules.now.rows(p.rules.rows)) {
    ban = ban_of_lane(p.rules, r, p.rules.length(r));
  }
  const std::int64_t first = std::int64_t{r} * p.from.each;
  const float *tops = p.from.tops + first, *sums = p.from.sums + first;
  float top = -INFINITY;
#pragma unroll 8
  for (int s = lane; s < p.from.each; s += kWarp) top = fmaxf(top, tops[s]);
  top = warp_max(top);
  const float shift = shift_of(top);
  double sum = 0;
  // A stretch without any logit above -inf adds 0, or the NaN that it has.
#pragma unroll 8
  for (int s = lane; s < p.from.each; s += kWarp) {
    sum += static_cast<double>(sums[s] * expf(tops[s] - shift));
  }
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, offset);
  }
  const double log_of_all = log_sum(top, sum, p.banned != nullptr ? p.banned + r : nullptr);

  for (int rank = 0; rank < p.count;) {
    const Key best = keys.take();
    if (best == 0) break;
    // What is banned counts in the sum, and comes no more.
    if (__any_sync(kAllLanes, ban.wanted && ban.token == id_of(best))) continue;
    if (lane == 0) {
      const std::int64_t at = std::int64_t{r} * p.count + rank;
      const auto log_prob = static_cast<float>(static_cast<double>(logit_of(best)) - log_of_all);
      p.log_probs[at] = log_prob;
      p.ids[at] = id_of(best);
      keep(rank, log_prob, id_of(best));
    }
    ++rank;
  }
}

// A kernel that does this for all rows.
void merge_stretches(CudaContext& ctx, const Merge& merge);

}  // namespace nunchi::kernels::cuda
