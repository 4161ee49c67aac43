// Samples tokens, one block per row.
//
// Weights are integers, 2^42 for the most likely token, so that their sums do not depend on the
// order of threads. With top_k or top_p, tokens are taken in the order of their logits (on the CPU,
// of their weights: the same unless f64 cannot tell two weights apart), of equal ones the lower id
// first. They are never sorted: the first token in that order with which the sum of weights, or the
// number of tokens, exceeds a limit is found digit by digit, from histograms of the logits' bits.
// top_k, top_p and the draw itself are such limits.
#include <string>

#include "nunchi/kernels/cuda/search/logit_keys.h"
#include "nunchi/kernels/limits.h"
#include "nunchi/kernels/search.h"

namespace nunchi::kernels {
namespace {

constexpr int kThreads = 1024, kWarps = kThreads / kWarp;
constexpr int kBins = kThreads, kBits = 10;
// Weights are added in three parts of 14 bits: shared memory adds 32 bits at once, which holds the
// sum of kMaxTokens parts.
constexpr int kParts = 3, kPartBits = 14;
constexpr double kOne = 0x1p42;
constexpr std::int64_t kMaxTokens = limits_of(Device::cuda).vocabulary;
static_assert(kMaxTokens < std::int64_t{1} << (32 - kPartBits));
constexpr std::uint32_t kDrawCounter = 0x5A3B1E00u;  // the same as on the CPU, for the same draws

using Sum = unsigned long long;

template <class N>
struct SampleArguments {
  int vocabulary;
  StepCounts counts;
  SearchRows hypotheses;
  const UnitOptions* options;
  const N* logits;
  const double* banned;
  float* log_probs;
  std::int32_t* ids;
};

struct Shared {
  // Histograms of the first digit, with which every search begins, and of the current one.
  unsigned mass[2][kParts][kBins];
  unsigned count[2][kBins];
  Sum warp_sums[kWarps];
  float warp_values[kWarps];
  Sum mass_before, count_before;
  int found;
};

// The inclusive sum over lanes.
__device__ Sum warp_scan(Sum x) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
#pragma unroll
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const Sum other = __shfl_up_sync(kAllLanes, x, static_cast<unsigned>(offset));
    if (lane >= offset) x += other;
  }
  return x;
}

// The sum over all threads before this one.
__device__ Sum block_scan(Shared& shared, Sum x) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const Sum inclusive = warp_scan(x);
  if (threadIdx.x % kWarp == kWarp - 1) shared.warp_sums[warp] = inclusive;
  __syncthreads();
  Sum before = inclusive - x;
  for (int w = 0; w < warp; ++w) before += shared.warp_sums[w];
  __syncthreads();
  return before;
}

__device__ Sum block_sum(Shared& shared, Sum x) {
  const Sum inclusive = warp_scan(x);
  if (threadIdx.x % kWarp == kWarp - 1) shared.warp_sums[threadIdx.x / kWarp] = inclusive;
  __syncthreads();
  Sum all = 0;
  for (const Sum part : shared.warp_sums) all += part;
  __syncthreads();
  return all;
}

template <class N>
class RowSampler {
 public:
  __device__ RowSampler(const SampleArguments<N>& p, const UnitOptions& unit, Shared& shared)
      : p_(p),
        unit_(unit),
        x_(p.logits + std::int64_t{blockIdx.x} * p.vocabulary),
        shared_(shared) {}

  __device__ void draw() {
    find_top();
    const double log_of_all = log_of_sum();
    const bool by_number = unit_.top_k > 0 && unit_.top_k < p_.vocabulary;
    const int id = by_number || unit_.top_p < 1 ? draw_cut(by_number) : draw_from_all();
    if (threadIdx.x == 0) {
      p_.ids[blockIdx.x] = id;
      p_.log_probs[blockIdx.x] =
          static_cast<float>(static_cast<double>(to_float(x_[id])) - log_of_all);
    }
  }

 private:
  // Number of bits below the digit of a level. A digit has up to ten bits; two digits cover bf16's
  // 16 bits.
  static constexpr int kLevels = sizeof(N) == 4 ? 4 : 2;
  __device__ static int below(int level) { return max(32 - kBits * (level + 1), 0); }
  static constexpr int kLowest = sizeof(N) == 4 ? 0 : 12;  // below(kLevels - 1)

  // A token in the sorted order: its logit, and its index among the tokens with that logit.
  struct RankedToken {
    std::uint32_t digits;  // the upper bits of order_of() of its logit
    Sum tie;               // number of equal logits before it
    Sum mass;              // sum of the weights up to this token
  };

  template <class F>
  __device__ void for_each_logit(F&& f) const {
    for (int i = static_cast<int>(threadIdx.x); i < p_.vocabulary; i += kThreads) {
      f(to_float(x_[i]));
    }
  }

  __device__ void find_top() {
    float max_logit = -INFINITY;
    for_each_logit([&](float value) { max_logit = fmaxf(max_logit, value); });
    max_logit = warp_max(max_logit);
    if (threadIdx.x % kWarp == 0) shared_.warp_values[threadIdx.x / kWarp] = max_logit;
    __syncthreads();
    for (const float other : shared_.warp_values) max_logit = fmaxf(max_logit, other);
    max_logit_ = max_logit;
    __syncthreads();
  }

  __device__ double log_of_sum() {
    const float shift = shift_of(max_logit_);
    float sum = 0;
    for_each_logit([&](float value) { sum += exponential<N>(value - shift); });
    sum = warp_sum(sum);
    if (threadIdx.x % kWarp == 0) shared_.warp_values[threadIdx.x / kWarp] = sum;
    __syncthreads();
    if (threadIdx.x != 0) return 0;  // only thread 0 uses it
    double all = 0;
    for (const float part : shared_.warp_values) all += part;
    return log_sum(max_logit_, all, p_.banned != nullptr ? p_.banned + blockIdx.x : nullptr);
  }

  // A NaN has no weight.
  __device__ Sum weight(float value) const {
    const double w =
        exp((static_cast<double>(value) - static_cast<double>(max_logit_)) / unit_.temperature);
    return w >= 0 ? __double2ull_rn(w * kOne) : 0;
  }

  __device__ double uniform() const {
    const auto stream = static_cast<std::uint64_t>(unit_.stream);
    const std::int32_t generated = p_.hypotheses.length[blockIdx.x] - unit_.prefix_length;
    const philox::Words words =
        philox::bits({static_cast<std::uint32_t>(generated), static_cast<std::uint32_t>(stream),
                      static_cast<std::uint32_t>(stream >> 32), kDrawCounter},
                     philox::key_of({.seed = unit_.seed, .step = 0}));
    const std::uint64_t bits = std::uint64_t{words[0]} << 32 | words[1];
    return static_cast<double>(bits >> 11) * 0x1p-53;
  }
  // The draw as a limit: the first token with which the sum exceeds it is drawn.
  __device__ Sum drawn_limit(Sum mass) const {
    return min(__double2ull_rd(uniform() * __ull2double_rn(mass)), mass - 1);
  }

  // In the order of ids, the first token with which the sum of f(logit) exceeds limit(total sum);
  // 0 if the sum is 0. Each warp searches one part of the row.
  template <class F, class Limit>
  __device__ int first_past(F&& f, Limit&& limit_of) {
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    const int lane = static_cast<int>(threadIdx.x % kWarp);
    const int size = (p_.vocabulary + kThreads - 1) / kThreads * kWarp;
    const int begin = warp * size, end = min(begin + size, p_.vocabulary);
    const auto value_at = [&](int i) { return i < end ? f(to_float(x_[i])) : Sum{0}; };
    Sum own = 0;
    for (int i = begin + lane; i < end; i += kWarp) own += value_at(i);
    own = warp_scan(own);
    if (lane == kWarp - 1) shared_.warp_sums[warp] = own;
    if (threadIdx.x == 0) shared_.found = 0;
    __syncthreads();
    Sum all = 0, before = 0;
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp) before += shared_.warp_sums[w];
      all += shared_.warp_sums[w];
    }
    const Sum limit = all > 0 ? limit_of(all) : 0;
    if (before <= limit && before + shared_.warp_sums[warp] > limit) {
      for (int i = begin; i < end; i += kWarp) {
        const Sum up_to = before + warp_scan(value_at(i + lane));
        const unsigned past = __ballot_sync(kAllLanes, up_to > limit);
        if (past != 0) {
          if (lane == 0) shared_.found = i + __ffs(static_cast<int>(past)) - 1;
          break;
        }
        before = __shfl_sync(kAllLanes, up_to, kWarp - 1);
      }
    }
    __syncthreads();
    return shared_.found;
  }

  __device__ int draw_from_all() {
    return first_past([&](float value) { return weight(value); },
                      [&](Sum mass) { return drawn_limit(mass); });
  }

  // Histograms, by the next digit, of the tokens whose upper digits are `digits`.
  __device__ void count_digits(int level, std::uint32_t digits) {
    auto& mass = shared_.mass[level > 0];
    unsigned* count = shared_.count[level > 0];
    for (auto& part : mass) part[threadIdx.x] = 0;
    count[threadIdx.x] = 0;
    __syncthreads();
    const int low = below(level);
    const std::uint32_t mask = (1u << (level == 0 ? kBits : below(level - 1) - low)) - 1;
    for_each_logit([&](float value) {
      const std::uint32_t order = order_of(value);
      if (level > 0 && order >> below(level - 1) != digits) return;
      const std::uint32_t bin = order >> low & mask;
      atomicAdd(&count[bin], 1u);
      const Sum w = weight(value);
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        // The last part also has the bits above: 2^14 for the most likely token.
        const auto here = static_cast<unsigned>(w >> (part * kPartBits));
        const unsigned bits = part + 1 < kParts ? here & ((1u << kPartBits) - 1) : here;
        if (bits > 0) atomicAdd(&mass[part][bin], bits);
      }
    });
    __syncthreads();
  }

  __device__ Sum mass_of(bool deeper, int bin) const {
    Sum mass = 0;
    for (int part = 0; part < kParts; ++part) {
      mass += Sum{shared_.mass[deeper][part][bin]} << (part * kPartBits);
    }
    return mass;
  }

  // The first token of the sorted order with which the sum of weights, or the number of tokens,
  // exceeds `limit`, which must be less than the total.
  template <bool ByMass>
  __device__ RankedToken find(Sum limit) {
    Sum mass_before = 0, count_before = 0;
    std::uint32_t digits = 0;
    for (int level = 0; level < kLevels; ++level) {
      if (level > 0) count_digits(level, digits);
      const int bits = level == 0 ? kBits : below(level - 1) - below(level);
      const int bin = (1 << bits) - 1 - static_cast<int>(threadIdx.x);  // the highest first
      const Sum mass = bin >= 0 ? mass_of(level > 0, bin) : 0;
      const Sum count = bin >= 0 ? shared_.count[level > 0][bin] : 0;
      const Sum mass_here = mass_before + block_scan(shared_, mass);
      const Sum count_here = count_before + block_scan(shared_, count);
      const Sum before = ByMass ? mass_here : count_here;
      if (before <= limit && before + (ByMass ? mass : count) > limit) {
        shared_.found = bin;
        shared_.mass_before = mass_here;
        shared_.count_before = count_here;
      }
      __syncthreads();
      digits = digits << bits | static_cast<std::uint32_t>(shared_.found);
      mass_before = shared_.mass_before;
      count_before = shared_.count_before;
      __syncthreads();
    }
    // The remaining tokens have equal logits. Bits that bf16 lacks are 0, or 1 if the logit is
    // negative.
    const bool negative = digits >> (31 - kLowest) == 0;
    const std::uint32_t order = digits << kLowest | (negative ? (1u << kLowest) - 1 : 0);
    const Sum each = weight(value_of(order));
    const Sum tie = ByMass ? (limit - mass_before) / each : limit - count_before;
    return {.digits = digits, .tie = tie, .mass = mass_before + (tie + 1) * each};
  }

  __device__ int draw_cut(bool by_number) {
    count_digits(0, 0);
    Sum mass = by_number ? find<false>(static_cast<Sum>(unit_.top_k) - 1).mass
                         : block_sum(shared_, mass_of(false, static_cast<int>(threadIdx.x)));
    if (mass == 0) return 0;
    if (unit_.top_p < 1) {
      // A sum is at least `wanted` if it exceeds `wanted` - 1.
      const Sum wanted = __double2ull_ru(unit_.top_p * __ull2double_rn(mass));
      mass = find<true>(min(max(wanted, Sum{1}), mass) - 1).mass;
    }
    const RankedToken drawn = find<true>(drawn_limit(mass));
    return first_past(
        [&](float value) { return Sum{order_of(value) >> kLowest == drawn.digits ? 1u : 0u}; },
        [&](Sum) { return drawn.tie; });
  }

  const SampleArguments<N>& p_;
  const UnitOptions& unit_;
  const N* x_;
  Shared& shared_;
  float max_logit_ = -INFINITY;
};

template <class N>
__global__ __launch_bounds__(kThreads) void sample_tokens_kernel(const SampleArguments<N> p) {
  __shared__ Shared shared;
  if (blockIdx.x >= p.counts.rows(gridDim.x)) return;
  const UnitOptions unit = p.options[p.hypotheses.unit[blockIdx.x]];
  if (unit.sample == 0) return;
  RowSampler<N>(p, unit, shared).draw();
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const SampleTokens<T>& p) {
  if (p.rows == 0) return;
  if (p.vocabulary > kMaxTokens) {
    throw Error("sample_tokens: a vocabulary of " + std::to_string(p.vocabulary) +
                " is larger than " + std::to_string(kMaxTokens) + ".");
  }
  const SampleArguments<Native<T>> arguments{.vocabulary = static_cast<int>(p.vocabulary),
                                             .counts = p.counts,
                                             .hypotheses = p.hypotheses,
                                             .options = p.options,
                                             .logits = native(p.logits),
                                             .banned = p.banned,
                                             .log_probs = p.log_probs,
                                             .ids = p.ids};
  sample_tokens_kernel<<<static_cast<unsigned>(p.rows), kThreads, 0, ctx.stream()>>>(arguments);
  check_launch(p.name());
}
template void compute<Cuda>(CudaContext&, const SampleTokens<float>&);
template void compute<Cuda>(CudaContext&, const SampleTokens<BFloat16>&);

}  // namespace nunchi::kernels
