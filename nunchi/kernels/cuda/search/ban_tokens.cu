#include "nunchi/kernels/cuda/search/bans.h"
#include "nunchi/kernels/cuda/search/logits.h"
#include "nunchi/kernels/search.h"

namespace nunchi::kernels {
namespace {

template <class N>
struct BanJob {
  BanRules rules;
  std::int64_t vocabulary, no_repeat_ngram, suppressed_count;
  const std::int32_t* suppressed;
  N* logits;
  double* banned;
};

// The bans of one row, by a warp.
template <class N>
class RowBans {
 public:
  __device__ explicit RowBans(N* logits) : logits_(logits) {}

  // Called by all lanes, each with a token of its own to be banned or not.
  __device__ void ban(bool wanted, std::int32_t token) {
    const int lane = lane_of_thread();
    // Of lanes with one token the first counts it.
    const unsigned same = __match_any_sync(kAllLanes, wanted ? token : -1 - lane);
    if (wanted && __ffs(static_cast<int>(same)) == lane + 1) {
      const double logit = to_float(logits_[token]);
      if (logit != -INFINITY) {
        own_ = own_ == -INFINITY ? logit : log_add(own_, logit);
        logits_[token] = from_float<N>(-INFINITY);
      }
    }
    __syncwarp();  // what is banned now is not counted again by another lane
  }

  // log Σ exp of all that was banned, the same in all lanes.
  __device__ double total() const {
    if (__ballot_sync(kAllLanes, own_ != -INFINITY) == 0) return -INFINITY;
    double top = own_;
#pragma unroll
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
      top = fmax(top, __shfl_xor_sync(kAllLanes, top, offset));
    }
    double sum = exp(own_ - top);
#pragma unroll
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
      sum += __shfl_xor_sync(kAllLanes, sum, offset);
    }
    return top + log(sum);
  }

 private:
  N* logits_;
  double own_ = -INFINITY;  // of what this lane banned
};

__device__ bool same_tokens(const std::int32_t* a, const std::int32_t* b, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

constexpr int kBanThreads = 128;

// One warp for each row.
template <class N>
__global__ __launch_bounds__(kBanThreads) void ban_tokens_kernel(const BanJob<N> p) {
  wait_for_previous_kernel();
  const BanRules& rules = p.rules;
  const std::int64_t row = (std::int64_t{blockIdx.x} * kBanThreads + threadIdx.x) / kWarp;
  if (row >= rules.now.rows(rules.rows)) return;
  const int lane = lane_of_thread();
  const std::int32_t* tokens = rules.hypotheses.tokens + row * rules.stride;
  const std::int64_t length = rules.length(row);
  RowBans<N> bans(p.logits + row * p.vocabulary);

  if (const std::int64_t n = p.no_repeat_ngram; n > 0 && length >= n) {
    const std::int32_t* recent = tokens + length - (n - 1);
    for (std::int64_t begin = 0; begin + n <= length; begin += kWarp) {
      const std::int64_t i = begin + lane;
      const bool repeats = i + n <= length && same_tokens(recent, tokens + i, n - 1);
      const std::int32_t token = repeats ? tokens[i + n - 1] : rules.end_token;
      // What is banned for its repetition can be anything but the end.
      const bool wanted = token != rules.end_token;
      if (__any_sync(kAllLanes, wanted)) bans.ban(wanted, token);
    }
  }
  for (std::int64_t begin = 0; begin < p.suppressed_count; begin += kWarp) {
    const std::int64_t i = begin + lane;
    const bool wanted = i < p.suppressed_count;
    bans.ban(wanted, wanted ? p.suppressed[i] : 0);
  }
  const Ban other = ban_of_lane(rules, row, length);
  bans.ban(other.wanted, other.token);
  if (p.banned == nullptr) return;
  const double total = bans.total();
  if (lane == 0) p.banned[row] = total;
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const BanTokens<T>& p) {
  if (p.rows == 0) return;
  const BanJob<Native<T>> job{.rules = rules_of(p),
                              .vocabulary = p.vocabulary,
                              .no_repeat_ngram = p.no_repeat_ngram,
                              .suppressed_count = p.suppressed_count,
                              .suppressed = p.suppressed,
                              .logits = native(p.logits),
                              .banned = p.banned};
  launch_overlapped(ctx, p.name(), ban_tokens_kernel<Native<T>>,
                    {blocks_for(p.rows * kWarp, kBanThreads), kBanThreads}, job);
}
template void compute<Cuda>(CudaContext&, const BanTokens<float>&);
template void compute<Cuda>(CudaContext&, const BanTokens<BFloat16>&);

}  // namespace nunchi::kernels
