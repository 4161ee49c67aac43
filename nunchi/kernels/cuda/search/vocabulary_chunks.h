// The best logits of a row, found chunk by chunk of the vocabulary and then merged.
#pragma once

#include "nunchi/kernels/cuda/search/ban_rules.h"
#include "nunchi/kernels/cuda/search/logit_keys.h"

namespace nunchi::kernels {

struct alignas(16) ChunkSummary {
  float max_logit, sum;  // the highest logit, and Σ exp(x - shift_of(max_logit))
  // Only if keys are not sorted:
  std::uint32_t best;  // order_of() of the highest key's logit
  std::int32_t count;  // number of keys
};

struct VocabularyChunks {
  int per_row = 1;      // chunks per row
  int kept = 1;         // the highest `kept` logits of a chunk are among its keys, or all of them
  int capacity = 1;     // maximum number of keys per chunk
  Key* keys = nullptr;  // [R, per_row, capacity]; the first `count` are valid; 0: none
  // Sorted: keys descend and fill the capacity, and a row has at most kWarp chunks. Otherwise a
  // chunk has at most kWarp keys.
  bool sorted = false;
  ChunkSummary* summaries = nullptr;  // [R, per_row]
};

struct Merge {
  VocabularyChunks from;
  int rows, count;       // count <= kept
  const double* banned;  // [R] as in TopTokens, or null
  // Rules that ban tokens which may still be among the keys: chunks have kept as many more keys as
  // the rules can ban.
  bool bans;
  BanRules rules;
  float* log_probs;   // [R, count]
  std::int32_t* ids;  // [R, count]
};

// Shared memory of a warp.
struct MergeBuffer {
  static constexpr int kChunks = 16;
  int chunks[kChunks], counts[kChunks];
  Key keys[kWarp];
};

// The chunks of one row, read by a warp: lane i reads chunks i, i + 32, … and holds the first few
// in registers.
class RowChunks {
 public:
  __device__ RowChunks(const VocabularyChunks& from, int row)
      : from_(from), first_(std::int64_t{row} * from.per_row) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const int c = lane_of_thread() + i * kWarp;
      held_[i] = {.max_logit = -INFINITY, .sum = 0, .best = 0, .count = 0};
      if (c < from_.per_row) held_[i] = from_.summaries[first_ + c];
    }
  }

  // The logarithm of the sum of all exponentials.
  __device__ double log_of_all(const double* banned) const {
    float max_logit = -INFINITY;
    each_summary(
        [&](const ChunkSummary& chunk, int) { max_logit = fmaxf(max_logit, chunk.max_logit); });
    max_logit = warp_max(max_logit);
    const float shift = shift_of(max_logit);
    double sum = 0;
    // A chunk without a logit above -inf adds 0, or its NaN.
    each_summary([&](const ChunkSummary& chunk, int c) {
      if (c < from_.per_row) sum += static_cast<double>(chunk.sum * expf(chunk.max_logit - shift));
    });
#pragma unroll
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
      sum += __shfl_xor_sync(kAllLanes, sum, offset);
    }
    return log_sum(max_logit, sum, banned);
  }

  // The keys that can be among the row's `kept` highest: one in each lane, or 0. False where they
  // do not fit into a warp, because many are equal or NaN, and where keys are sorted.
  __device__ bool find(MergeBuffer& buffer, Key& mine) const {
    if (from_.sorted) return false;
    // At least `kept` keys reach the kept-th highest of the lanes' best keys.
    std::uint32_t best = 0, least = 0;
    each_summary([&](const ChunkSummary& chunk, int) { best = max(best, chunk.best); });
    for (int i = 0; i < from_.kept; ++i) {
      least = __reduce_max_sync(kAllLanes, best);
      const unsigned holders = __ballot_sync(kAllLanes, best == least);
      if (lane_of_thread() == __ffs(static_cast<int>(holders)) - 1) best = 0;
    }
    int chosen = 0;
    each_summary([&](const ChunkSummary& chunk, int c) {
      const int at = next_index(c < from_.per_row && chunk.best >= least, chosen);
      if (at < 0 || at >= MergeBuffer::kChunks) return;
      buffer.chunks[at] = c;
      buffer.counts[at] = chunk.count;
    });
    if (chosen > MergeBuffer::kChunks) return false;
    __syncwarp();
    int found = 0;
    for (int first = 0; first < chosen; first += kChunksPerRound) {
      Key keys[kChunksPerRound];
#pragma unroll
      for (int i = 0; i < kChunksPerRound; ++i) {
        const std::int64_t s = first_ + buffer.chunks[min(first + i, chosen - 1)];
        keys[i] = from_.keys[s * from_.capacity + min(lane_of_thread(), from_.capacity - 1)];
      }
#pragma unroll
      for (int i = 0; i < kChunksPerRound; ++i) {
        const int count = first + i < chosen ? buffer.counts[first + i] : 0;
        const bool there = lane_of_thread() < count && keys[i] != 0;
        const int at =
            next_index(there && static_cast<std::uint32_t>(keys[i] >> 32) >= least, found);
        if (at >= 0 && at < kWarp) buffer.keys[at] = keys[i];
      }
    }
    __syncwarp();
    mine = lane_of_thread() < found ? buffer.keys[lane_of_thread()] : 0;
    __syncwarp();
    return found >= from_.kept && found <= kWarp;
  }

  // The highest of sorted keys that was not taken, in all lanes; 0: none is left. Each lane has a
  // chunk, of which `taken` keys were taken.
  __device__ Key take(int& taken) const {
    const bool more = lane_of_thread() < from_.per_row && taken < from_.capacity;
    const Key own = more ? from_.keys[(first_ + lane_of_thread()) * from_.capacity + taken] : 0;
    const Key best = warp_max(own);
    if (own == best) ++taken;
    return best;
  }

  // The highest key of all below `limit`, in all lanes; 0: none is left.
  __device__ Key below(Key limit) const {
    Key best = 0;
    for (int i = lane_of_thread(); i < from_.per_row * from_.capacity; i += kWarp) {
      const std::int64_t s = first_ + i / from_.capacity;
      if (i % from_.capacity >= from_.summaries[s].count) continue;
      const Key key = from_.keys[s * from_.capacity + i % from_.capacity];
      if (key < limit) best = max(best, key);
    }
    return warp_max(best);
  }

 private:
  static constexpr int kHeld = 8;
  static constexpr int kChunksPerRound = 8;  // chunks whose keys are loaded at the same time

  // f(summary, chunk) for the chunks of this lane, by all lanes together; chunks past the last are
  // empty.
  template <class F>
  __device__ void each_summary(F&& f) const {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) f(held_[i], lane_of_thread() + i * kWarp);
    for (int first = kHeld * kWarp; first < from_.per_row; first += kWarp) {
      const int c = first + lane_of_thread();
      f(c < from_.per_row ? from_.summaries[first_ + c] : ChunkSummary{-INFINITY, 0, 0, 0}, c);
    }
  }
  // The next index from `taken` on for each lane that wants one, in the order of lanes; otherwise
  // -1.
  __device__ static int next_index(bool wanted, int& taken) {
    const unsigned all = __ballot_sync(kAllLanes, wanted);
    const int at = wanted ? taken + __popc(all & ((1u << lane_of_thread()) - 1)) : -1;
    taken += __popc(all);
    return at;
  }

  const VocabularyChunks& from_;
  std::int64_t first_;
  ChunkSummary held_[kHeld];
};

// Writes the most likely tokens of a row. Called by a whole warp; for each token one lane also
// calls on_token(rank, log-probability, id).
template <class OnToken>
__device__ void merge_row(const Merge& p, int r, MergeBuffer& buffer, OnToken&& on_token) {
  const int lane = lane_of_thread();
  const RowChunks chunks(p.from, r);
  Ban ban;
  if (p.bans && r < p.rules.counts.rows(p.rules.rows)) ban = ban_of_lane(p.rules, r);
  Key mine = 0;
  const bool found = chunks.find(buffer, mine);
  const double log_of_all = chunks.log_of_all(p.banned != nullptr ? p.banned + r : nullptr);
  const auto write = [&](int rank, Key key) {
    const std::int64_t at = std::int64_t{r} * p.count + rank;
    const auto log_prob = static_cast<float>(static_cast<double>(logit_of(key)) - log_of_all);
    p.log_probs[at] = log_prob;
    p.ids[at] = id_of(key);
    on_token(rank, log_prob, id_of(key));
  };
  // Banned tokens count only in the sum.
  if (found) {
    for (unsigned all = __ballot_sync(kAllLanes, ban.wanted); all != 0; all &= all - 1) {
      const std::int32_t token =
          __shfl_sync(kAllLanes, ban.token, __ffs(static_cast<int>(all)) - 1);
      if (mine != 0 && id_of(mine) == token) mine = 0;
    }
    buffer.keys[lane] = mine;
    __syncwarp();
    int rank = 0;
#pragma unroll 8
    for (int other = 0; other < kWarp; ++other) rank += buffer.keys[other] > mine ? 1 : 0;
    if (mine != 0 && rank < p.count) write(rank, mine);
    return;
  }
  // Finds tokens one after another. There are enough keys: each chunk has kept as many as are
  // requested.
  Key best = ~Key{0};
  int taken = 0;
  for (int rank = 0; rank < p.count;) {
    best = p.from.sorted ? chunks.take(taken) : chunks.below(best);
    if (best == 0) return;
    if (__any_sync(kAllLanes, ban.wanted && ban.token == id_of(best))) continue;
    if (lane == 0) write(rank, best);
    ++rank;
  }
}

// Launches a kernel that calls merge_row() for all rows.
void merge_chunks(CudaContext& ctx, const Merge& merge);

}  // namespace nunchi::kernels
