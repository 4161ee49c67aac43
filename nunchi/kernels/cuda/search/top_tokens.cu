// The most likely tokens of rows. A block keeps one chunk of a row in registers; few rows are
// divided into many chunks, to use all of the device, and a second kernel merges the results.
#include <limits>
#include <string>

#include "nunchi/kernels/cuda/search/vocabulary_chunks.h"
#include "nunchi/kernels/search.h"

namespace nunchi::kernels {
namespace {

constexpr int kThreads = 512, kWarps = kThreads / kWarp;
// Candidates that a block sorts at once. Only rows with very many equal logits have more.
constexpr int kMaxCandidates = 1024;
// Chunks per row: the merge has one lane for each.
constexpr int kMaxChunks = kWarp;

template <class N>
struct TopArguments {
  int vocabulary;
  int count;             // n
  int group_lanes;       // lanes per group; groups' maxima give a threshold; 0: no threshold
  const N* logits;       // [R, V]
  const double* banned;  // [R] or null
  bool bans;             // whether `rules` ban tokens that are still among the logits
  BanRules rules;
  float* log_probs;         // [R, n]
  std::int32_t* ids;        // [R, n]
  VocabularyChunks chunks;  // with n keys each; without memory if a row is one chunk
};

// Writes a block's results: those of the row, or those of the chunk for the merge.
template <class N>
class Writer {
 public:
  // `writing`: this thread will call write().
  __device__ Writer(const TopArguments<N>& p, float max_logit, float sum, bool writing) : p_(p) {
    if (p.chunks.per_row == 1) {
      if (!writing) return;
      const double* banned = p.banned != nullptr ? p.banned + blockIdx.x : nullptr;
      log_sum_ = log_sum(max_logit, sum, banned);
    } else if (threadIdx.x == 0) {
      ChunkSummary& summary = p.chunks.summaries[blockIdx.x];
      summary.max_logit = max_logit;
      summary.sum = sum;
    }
  }
  __device__ void write(int rank, Key key) const {
    const std::int64_t at = std::int64_t{blockIdx.x} * p_.count + rank;
    if (p_.chunks.per_row > 1) {
      p_.chunks.keys[at] = key;
    } else {
      p_.log_probs[at] = static_cast<float>(static_cast<double>(logit_of(key)) - log_sum_);
      p_.ids[at] = id_of(key);
    }
  }

 private:
  const TopArguments<N>& p_;
  double log_sum_ = 0;
};

// The best of a thread's tokens below `limit`; 0: none is left.
template <class Row>
__device__ Key best_below(const Row& row, int first_id, Key limit) {
  Key best = 0;
  row.each([&](float value, int i) {
    const Key key = key_of(value, first_id + i);
    if (key < limit && key > best) best = key;
  });
  return best;
}

// Groups for more rows than blocks can run at once: small blocks load while others compute.
constexpr int kShort = 3;

// Blocks per multiprocessor.
template <class N, int Groups, bool Aligned>
constexpr int kBlocksPerMultiprocessor = !Aligned || sizeof(N) * Groups == 10 ? 1
                                         : sizeof(N) * Groups == 4 * kShort   ? 3
                                                                              : 2;

// Blocks are numbered row by row, the chunks of a row one after another.
template <class N, int Groups, bool Aligned>
__global__ __launch_bounds__(
    kThreads,
    kBlocksPerMultiprocessor<N, Groups, Aligned>) void top_tokens_kernel(const TopArguments<N> p) {
  wait_for_previous_kernel();
  using Row = RowRegisters<N, kThreads, Groups, Aligned>;
  __shared__ float warp_max_logits[kWarps], warp_sums[kWarps], group_maxima[kThreads];
  __shared__ Key candidates[kMaxCandidates];
  __shared__ int found;
  __shared__ float threshold;
  __shared__ Key warp_keys[kWarps];
  __shared__ std::int32_t banned[kWarp];
  __shared__ int bans;

  const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp, lane = thread % kWarp;
  const std::int64_t r = blockIdx.x / static_cast<unsigned>(p.chunks.per_row);
  const int first_id =
      static_cast<int>(blockIdx.x % static_cast<unsigned>(p.chunks.per_row)) * Row::kCapacity;
  const int size = min(p.vocabulary - first_id, Row::kCapacity);
  Row row;
  row.load(p.logits + r * p.vocabulary + first_id, size);

  float own_max = -INFINITY;
  row.each([&](float value, int) { own_max = fmaxf(own_max, value); });
  float max_logit = warp_max(own_max);
  if (lane == 0) warp_max_logits[warp] = max_logit;
  if (thread == 0) found = bans = 0;
  if (p.bans && warp == 0) {
    Ban ban;
    if (r < p.rules.counts.rows(p.rules.rows)) ban = ban_of_lane(p.rules, r);
    const unsigned all = __ballot_sync(kAllLanes, ban.wanted);
    if (ban.wanted) banned[__popc(all & ((1u << lane) - 1))] = ban.token;
    if (lane == 0) bans = __popc(all);
  }
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kWarps; ++w) max_logit = fmaxf(max_logit, warp_max_logits[w]);
  const float shift = shift_of(max_logit);
  float sum = 0;
  // About 20 bits are exact, enough for a sum over the vocabulary.
  row.each([&](float value, int) { sum += fast_exp2((value - shift) * kLog2E); });
  sum = warp_sum(sum);
  if (lane == 0) warp_sums[warp] = sum;

  // Banned tokens count only in the sum.
  bool changed = false;
  for (int i = 0; i < bans; ++i) {
    const int at = banned[i] - first_id;
    if (at < 0 || at >= size || !Row::has(at)) continue;
    row.remove(at);
    changed = true;
  }
  if (changed) {
    own_max = -INFINITY;
    row.each([&](float value, int) { own_max = fmaxf(own_max, value); });
  }
  // At least n logits reach the n-th highest of the maxima of disjoint groups.
  const int lanes = p.group_lanes;
  if (lanes > 0) {
    float group_max = own_max;
    for (int offset = lanes / 2; offset > 0; offset /= 2) {
      group_max = fmaxf(group_max, __shfl_xor_sync(kAllLanes, group_max, offset));
    }
    if (lane % lanes == 0) group_maxima[thread / lanes] = group_max;
  }
  __syncthreads();
  if (lanes > 0 && thread < kThreads / lanes) {
    const float mine = group_maxima[thread];
    int rank = 0;
    for (int g = 0; g < kThreads / lanes; ++g) {
      rank += group_maxima[g] > mine || (group_maxima[g] == mine && g < thread) ? 1 : 0;
    }
    if (rank == p.count - 1) threshold = mine;
  }
  __syncthreads();
  sum = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) sum += warp_sums[w];

  if (lanes > 0) {
    const float least = threshold;
    if (own_max >= least) {
      row.each([&](float value, int i) {
        if (value >= least) {
          const int at = atomicAdd(&found, 1);
          if (at < kMaxCandidates) candidates[at] = key_of(value, first_id + i);
        }
      });
    }
    __syncthreads();
    // NaNs reach no threshold, so that too few candidates may be left.
    if (found >= min(p.count, size) && found <= kMaxCandidates) {
      const Writer<N> writer(p, max_logit, sum, thread < max(found, p.count));
      for (int i = thread; i < max(found, p.count); i += kThreads) {
        if (i >= found) {
          writer.write(i, 0);
          continue;
        }
        const Key mine = candidates[i];
        int rank = 0;
        for (int other = 0; other < found; ++other) rank += candidates[other] > mine ? 1 : 0;
        if (rank < p.count) writer.write(rank, mine);
      }
      return;
    }
  }

  // Finds tokens one after another, for a large n or if too many logits are equal.
  const Writer<N> writer(p, max_logit, sum, thread == 0);
  Key mine = best_below(row, first_id, std::numeric_limits<Key>::max());
  for (int rank = 0; rank < p.count; ++rank) {
    const Key warp_best = warp_max(mine);
    if (lane == 0) warp_keys[warp] = warp_best;
    __syncthreads();
    Key best = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) best = max(best, warp_keys[w]);
    __syncthreads();
    if (thread == 0) writer.write(rank, best);
    if (mine == best && best != 0) mine = best_below(row, first_id, best);
  }
}

// Lanes per group: two groups per requested token give a good threshold.
int group_lanes(std::int64_t count) {
  for (const int lanes : {32, 8, 2}) {
    if (2 * count <= kThreads / lanes) return lanes;
  }
  return 0;
}

template <class N, bool Aligned, int Groups>
void launch(CudaContext& ctx, TopArguments<N> arguments, std::int64_t rows) {
  constexpr int kCapacity = RowRegisters<N, kThreads, Groups, Aligned>::kCapacity;
  const int each = static_cast<int>(blocks_for(arguments.vocabulary, kCapacity));
  const std::int64_t blocks = rows * each;
  const auto all = static_cast<std::size_t>(each == 1 ? 0 : blocks);
  const ScratchMemory keys(ctx.arena(),
                           all * static_cast<std::size_t>(arguments.count) * sizeof(Key));
  const ScratchMemory summaries(ctx.arena(), all * sizeof(ChunkSummary));
  arguments.chunks = {.per_row = each,
                      .kept = arguments.count,
                      .capacity = arguments.count,
                      .keys = keys.as<Key>(),
                      .sorted = true,
                      .summaries = summaries.as<ChunkSummary>()};
  launch_overlapped(ctx, "top_tokens", top_tokens_kernel<N, Groups, Aligned>,
                    {static_cast<unsigned>(blocks), kThreads}, arguments);
  if (each == 1) return;
  merge_chunks(ctx, {.from = arguments.chunks,
                     .rows = static_cast<int>(rows),
                     .count = arguments.count,
                     .banned = arguments.banned,
                     .bans = false,
                     .rules = {},
                     .log_probs = arguments.log_probs,
                     .ids = arguments.ids});
}

template <class N, bool Aligned>
void choose(CudaContext& ctx, const TopArguments<N>& arguments, std::int64_t rows) {
  // The shortest chunks with which all blocks still run at once; in a deterministic context, the
  // same chunks for any number of rows.
  const auto suits = [&](int groups) {
    const std::int64_t chunks =
        blocks_for(arguments.vocabulary, kThreads * groups * 16 / static_cast<int>(sizeof(N)));
    if (chunks > kMaxChunks) return false;
    if (ctx.deterministic()) return groups >= 2;
    return rows * chunks <= 3 * ctx.multiprocessors();
  };
  if (suits(1)) return launch<N, Aligned, 1>(ctx, arguments, rows);
  if (suits(2)) return launch<N, Aligned, 2>(ctx, arguments, rows);
  if constexpr (sizeof(N) == 4) {
    constexpr int kCapacity = RowRegisters<N, kThreads, kShort, Aligned>::kCapacity;
    if (blocks_for(arguments.vocabulary, kCapacity) <= kMaxChunks) {
      return launch<N, Aligned, kShort>(ctx, arguments, rows);
    }
  }
  constexpr int kMaxGroups = 5;
  constexpr int kLargest = RowRegisters<N, kThreads, kMaxGroups, Aligned>::kCapacity * kMaxChunks;
  if (arguments.vocabulary > kLargest) {
    throw Error("top_tokens: a vocabulary of " + std::to_string(arguments.vocabulary) +
                " is larger than " + std::to_string(kLargest) + ".");
  }
  launch<N, Aligned, kMaxGroups>(ctx, arguments, rows);
}

template <class T>
void top_tokens(CudaContext& ctx, const TopTokens<T>& p, const BanTokens<T>* bans = nullptr) {
  if (p.rows == 0 || p.count == 0) return;
  using N = Native<T>;
  const TopArguments<N> arguments{.vocabulary = static_cast<int>(p.vocabulary),
                                  .count = static_cast<int>(p.count),
                                  .group_lanes = group_lanes(p.count),
                                  .logits = native(p.logits),
                                  .banned = bans == nullptr ? p.banned : nullptr,
                                  .bans = bans != nullptr,
                                  .rules = bans != nullptr ? rules_of(*bans) : BanRules{},
                                  .log_probs = p.log_probs,
                                  .ids = p.ids,
                                  .chunks = {}};
  if (rows_are_aligned(arguments.logits, p.vocabulary)) {
    choose<N, true>(ctx, arguments, p.rows);
  } else {
    choose<N, false>(ctx, arguments, p.rows);
  }
  check_launch(p.name());
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const TopTokens<T>& p) {
  top_tokens(ctx, p);
}
template void compute<Cuda>(CudaContext&, const TopTokens<float>&);
template void compute<Cuda>(CudaContext&, const TopTokens<BFloat16>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const TopAllowedTokens<T>& p) {
  // N-grams and suppressed tokens may ban more tokens than there are lanes for. In a deterministic
  // context a row's bits must not depend on whether another unit restricts n-grams, so bans are
  // always a separate kernel.
  if (!p.bans.any_ngram && p.bans.suppressed_count <= kSuppressedLanes && !ctx.deterministic()) {
    return top_tokens(ctx, p.top, &p.bans);
  }
  run_unprofiled(ctx, p.bans);
  run_unprofiled(ctx, p.top);
}
template void compute<Cuda>(CudaContext&, const TopAllowedTokens<float>&);
template void compute<Cuda>(CudaContext&, const TopAllowedTokens<BFloat16>&);

}  // namespace nunchi::kernels
