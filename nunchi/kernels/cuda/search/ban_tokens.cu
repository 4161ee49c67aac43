#include "nunchi/kernels/cuda/search/ban_rules.h"
#include "nunchi/kernels/cuda/search/logit_keys.h"
#include "nunchi/kernels/search.h"

namespace nunchi::kernels {
namespace {

template <class N>
struct BanArguments {
  BanRules rules;
  std::int64_t vocabulary;
  bool any_ngram;
  N* logits;
  double* banned;
};

// Bans tokens of one row. Used by a whole warp.
template <class N>
class RowBans {
 public:
  __device__ explicit RowBans(N* logits) : logits_(logits) {}

  // Called by all lanes; each lane bans its own token if `wanted`.
  __device__ void ban(bool wanted, std::int32_t token) {
    const int lane = lane_of_thread();
    // If several lanes have the same token, the first one counts it.
    const unsigned same = __match_any_sync(kAllLanes, wanted ? token : -1 - lane);
    if (wanted && __ffs(static_cast<int>(same)) == lane + 1) {
      const double logit = to_float(logits_[token]);
      if (logit != -INFINITY) {
        own_ = own_ == -INFINITY ? logit : log_add(own_, logit);
        logits_[token] = from_float<N>(-INFINITY);
      }
    }
    __syncwarp();  // so that no other lane counts the token again
  }

  // log Σ exp of all banned tokens, the same in all lanes.
  __device__ double total() const {
    if (__ballot_sync(kAllLanes, own_ != -INFINITY) == 0) return -INFINITY;
    double maximum = own_;
#pragma unroll
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
      maximum = fmax(maximum, __shfl_xor_sync(kAllLanes, maximum, offset));
    }
    double sum = exp(own_ - maximum);
#pragma unroll
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
      sum += __shfl_xor_sync(kAllLanes, sum, offset);
    }
    return maximum + log(sum);
  }

 private:
  N* logits_;
  double own_ = -INFINITY;  // log Σ exp of the tokens that this lane banned
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
__global__ __launch_bounds__(kBanThreads) void ban_tokens_kernel(const BanArguments<N> p) {
  wait_for_previous_kernel();
  const BanRules& rules = p.rules;
  const std::int64_t row = (std::int64_t{blockIdx.x} * kBanThreads + threadIdx.x) / kWarp;
  if (row >= rules.counts.rows(rules.rows)) return;
  const int lane = lane_of_thread();
  const std::int32_t* tokens = rules.hypotheses.tokens + row * rules.stride;
  const std::int64_t length = rules.hypotheses.length[row];
  RowBans<N> bans(p.logits + row * p.vocabulary);

  const std::int64_t n =
      p.any_ngram ? rules.options[rules.hypotheses.unit[row]].no_repeat_ngram : 0;
  if (n > 0 && length >= n) {
    const std::int32_t* recent = tokens + length - (n - 1);
    for (std::int64_t begin = 0; begin + n <= length; begin += kWarp) {
      const std::int64_t i = begin + lane;
      const bool repeats = i + n <= length && same_tokens(recent, tokens + i, n - 1);
      const std::int32_t token = repeats ? tokens[i + n - 1] : rules.end_token;
      // end_token here means no ban: the n-gram rule never bans the end token.
      const bool wanted = token != rules.end_token;
      if (__any_sync(kAllLanes, wanted)) bans.ban(wanted, token);
    }
  }
  // ban_of_lane() below bans the first kSuppressedLanes suppressed tokens; this loop bans the
  // others.
  for (std::int64_t begin = kSuppressedLanes; begin < rules.suppressed_count; begin += kWarp) {
    const std::int64_t i = begin + lane;
    const bool wanted = i < rules.suppressed_count;
    bans.ban(wanted, wanted ? rules.suppressed[i] : 0);
  }
  const Ban other = ban_of_lane(rules, row);
  bans.ban(other.wanted, other.token);
  if (p.banned == nullptr) return;
  const double total = bans.total();
  if (lane == 0) p.banned[row] = total;
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const BanTokens<T>& p) {
  if (p.rows == 0) return;
  const BanArguments<Native<T>> arguments{.rules = rules_of(p),
                                          .vocabulary = p.vocabulary,
                                          .any_ngram = p.any_ngram,
                                          .logits = native(p.logits),
                                          .banned = p.banned};
  launch_overlapped(ctx, p.name(), ban_tokens_kernel<Native<T>>,
                    {blocks_for(p.rows * kWarp, kBanThreads), kBanThreads}, arguments);
}
template void compute<Cuda>(CudaContext&, const BanTokens<float>&);
template void compute<Cuda>(CudaContext&, const BanTokens<BFloat16>&);

}  // namespace nunchi::kernels
