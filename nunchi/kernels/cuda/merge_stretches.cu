#include "nunchi/kernels/cuda/stretches.h"

namespace nunchi::kernels::cuda {
namespace {

// A row's keys, by a warp: each lane looks at every 32nd stretch.
class RowKeys {
 public:
  __device__ RowKeys(const Stretches& from, std::int64_t row)
      : keys_(from.keys + row * from.each * from.kept), each_(from.each), kept_(from.kept) {
#pragma unroll 4
    for (int s = lane(); s < each_; s += kWarp) own_ = max(own_, keys_[s * kept_]);
  }

  // The highest of those that were not taken, in all lanes; 0: none is left.
  __device__ Key take() {
    const Key best = warp_max(own_);
    if (own_ == best && best != 0) find_below(best);
    return best;
  }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
  __device__ void find_below(Key limit) {
    own_ = 0;
    for (int s = lane(); s < each_; s += kWarp) {
      const Key* keys = keys_ + s * kept_;
      Key key = keys[0];
      if (key >= limit) {
        // Of most stretches nothing was taken; of the others some.
        int begin = 1, end = kept_;
        while (begin < end) {
          const int middle = (begin + end) / 2;
          if (keys[middle] < limit) {
            end = middle;
          } else {
            begin = middle + 1;
          }
        }
        key = begin < kept_ ? keys[begin] : 0;
      }
      own_ = max(own_, key);
    }
  }

  const Key* keys_;
  int each_, kept_;
  Key own_ = 0;
};

constexpr int kThreads = 128;

// One warp for each row.
__global__ __launch_bounds__(kThreads) void merge_stretches_kernel(const Merge p) {
  const int r = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / kWarp);
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  if (r >= p.rows) return;
  begin();
  RowKeys keys(p.from, r);
  Ban ban;
  if (p.bans && r < p.rules.now.rows(p.rules.rows)) {
    ban = ban_of_lane(p.rules, r, p.rules.length(r));
  }
  const std::int64_t first = std::int64_t{r} * p.from.each;
  const float *tops = p.from.tops + first, *sums = p.from.sums + first;
  float top = -INFINITY;
  for (int s = lane; s < p.from.each; s += kWarp) top = fmaxf(top, tops[s]);
  top = warp_max(top);
  const auto shift = static_cast<double>(shift_of(top));
  double sum = 0;
  // A stretch without any logit above -inf adds 0, or the NaN that it has.
  for (int s = lane; s < p.from.each; s += kWarp) {
    sum += static_cast<double>(sums[s]) * exp(static_cast<double>(tops[s]) - shift);
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
      p.log_probs[at] = static_cast<float>(static_cast<double>(logit_of(best)) - log_of_all);
      p.ids[at] = id_of(best);
    }
    ++rank;
  }
}

}  // namespace

void merge_stretches(CudaContext& ctx, const Merge& merge) {
  start_early(ctx, "merge_stretches", merge_stretches_kernel,
              {blocks_for(std::int64_t{merge.rows} * kWarp, kThreads), kThreads}, merge);
}

}  // namespace nunchi::kernels::cuda
