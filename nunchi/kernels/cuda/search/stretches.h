// What was found in the stretches of rows of logits, and how it becomes what the rows have.
#pragma once

#include "nunchi/kernels/cuda/search/bans.h"
#include "nunchi/kernels/cuda/search/logits.h"

namespace nunchi::kernels {

struct alignas(16) StretchHead {
  float top, sum;  // the highest logit, and Σ exp(x - shift_of(top))
  // Where keys are not sorted:
  std::uint32_t best;  // the highest key's order_of()
  std::int32_t count;  // of its keys
};

struct Stretches {
  int each = 1;         // stretches of a row
  int kept = 1;         // the highest so many of a stretch are among its keys, or all
  int room = 1;         // keys that a stretch has room for
  Key* keys = nullptr;  // [R, each, room] the first `count`; 0: none
  // All of the room is written and keys descend, of at most a warp's stretches; otherwise a stretch
  // has room for at most a warp's keys.
  bool sorted = false;
  StretchHead* heads = nullptr;  // [R, each]
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

// A warp's shared memory.
struct MergeRoom {
  static constexpr int kStretches = 16;
  int stretches[kStretches], counts[kStretches];
  Key keys[kWarp];
};

// What was found of a row, by a warp: lanes look at every 32nd stretch, and have the first few in
// registers.
class RowFindings {
 public:
  __device__ RowFindings(const Stretches& from, int row)
      : from_(from), first_(std::int64_t{row} * from.each) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const int s = lane_of_thread() + i * kWarp;
      held_[i] = {.top = -INFINITY, .sum = 0, .best = 0, .count = 0};
      if (s < from_.each) held_[i] = from_.heads[first_ + s];
    }
  }

  // The logarithm of the sum of all exponentials.
  __device__ double log_of_all(const double* banned) const {
    float top = -INFINITY;
    each_head([&](const StretchHead& head, int) { top = fmaxf(top, head.top); });
    top = warp_max(top);
    const float shift = shift_of(top);
    double sum = 0;
    // A stretch without any logit above -inf adds 0, or the NaN that it has.
    each_head([&](const StretchHead& head, int s) {
      if (s < from_.each) sum += static_cast<double>(head.sum * expf(head.top - shift));
    });
#pragma unroll
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
      sum += __shfl_xor_sync(kAllLanes, sum, offset);
    }
    return log_sum(top, sum, banned);
  }

  // The keys that can be among the row's `kept` highest: each lane has another, or 0. False where
  // they have no room: many are equal or no numbers, or the stretches are few.
  __device__ bool find(MergeRoom& room, Key& mine) const {
    if (from_.sorted) return false;
    // The kept-th highest of what the lanes see is a threshold that so many keys reach at least.
    std::uint32_t best = 0, least = 0;
    each_head([&](const StretchHead& head, int) { best = max(best, head.best); });
    for (int i = 0; i < from_.kept; ++i) {
      least = __reduce_max_sync(kAllLanes, best);
      const unsigned holders = __ballot_sync(kAllLanes, best == least);
      if (lane_of_thread() == __ffs(static_cast<int>(holders)) - 1) best = 0;
    }
    int chosen = 0;
    each_head([&](const StretchHead& head, int s) {
      const int at = place(s < from_.each && head.best >= least, chosen);
      if (at < 0 || at >= MergeRoom::kStretches) return;
      room.stretches[at] = s;
      room.counts[at] = head.count;
    });
    if (chosen > MergeRoom::kStretches) return false;
    __syncwarp();
    int found = 0;
    for (int first = 0; first < chosen; first += kAtOnce) {
      Key keys[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const std::int64_t s = first_ + room.stretches[min(first + i, chosen - 1)];
        keys[i] = from_.keys[s * from_.room + min(lane_of_thread(), from_.room - 1)];
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int count = first + i < chosen ? room.counts[first + i] : 0;
        const bool there = lane_of_thread() < count && keys[i] != 0;
        const int at = place(there && static_cast<std::uint32_t>(keys[i] >> 32) >= least, found);
        if (at >= 0 && at < kWarp) room.keys[at] = keys[i];
      }
    }
    __syncwarp();
    mine = lane_of_thread() < found ? room.keys[lane_of_thread()] : 0;
    __syncwarp();
    return found >= from_.kept && found <= kWarp;
  }

  // Of sorted keys the highest that was not taken, in all lanes; 0: none is left. A lane has a
  // stretch, of which so many were taken.
  __device__ Key take(int& taken) const {
    const bool more = lane_of_thread() < from_.each && taken < from_.room;
    const Key own = more ? from_.keys[(first_ + lane_of_thread()) * from_.room + taken] : 0;
    const Key best = warp_max(own);
    if (own == best) ++taken;
    return best;
  }

  // The highest key of all below `limit`, in all lanes; 0: none is left.
  __device__ Key below(Key limit) const {
    Key best = 0;
    for (int i = lane_of_thread(); i < from_.each * from_.room; i += kWarp) {
      const std::int64_t s = first_ + i / from_.room;
      if (i % from_.room >= from_.heads[s].count) continue;
      const Key key = from_.keys[s * from_.room + i % from_.room];
      if (key < limit) best = max(best, key);
    }
    return warp_max(best);
  }

 private:
  static constexpr int kHeld = 8;
  static constexpr int kAtOnce = 8;  // stretches whose keys are on their way together

  // f(head, stretch) for those of this lane, by all lanes together; one behind the last is empty.
  template <class F>
  __device__ void each_head(F&& f) const {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) f(held_[i], lane_of_thread() + i * kWarp);
    for (int first = kHeld * kWarp; first < from_.each; first += kWarp) {
      const int s = first + lane_of_thread();
      f(s < from_.each ? from_.heads[first_ + s] : StretchHead{-INFINITY, 0, 0, 0}, s);
    }
  }
  // This lane's place behind the `taken` ones, if it wants one, or -1; lanes in their order.
  __device__ static int place(bool wanted, int& taken) {
    const unsigned all = __ballot_sync(kAllLanes, wanted);
    const int at = wanted ? taken + __popc(all & ((1u << lane_of_thread()) - 1)) : -1;
    taken += __popc(all);
    return at;
  }

  const Stretches& from_;
  std::int64_t first_;
  StretchHead held_[kHeld];
};

// Writes what a row has, by a warp; keep(rank, log-probability, id) is told, too, by some lane.
template <class Keep>
__device__ void merge_row(const Merge& p, int r, MergeRoom& room, Keep&& keep) {
  const int lane = lane_of_thread();
  const RowFindings findings(p.from, r);
  Ban ban;
  if (p.bans && r < p.rules.now.rows(p.rules.rows)) {
    ban = ban_of_lane(p.rules, r, p.rules.length(r));
  }
  Key mine = 0;
  const bool found = findings.find(room, mine);
  const double log_of_all = findings.log_of_all(p.banned != nullptr ? p.banned + r : nullptr);
  const auto write = [&](int rank, Key key) {
    const std::int64_t at = std::int64_t{r} * p.count + rank;
    const auto log_prob = static_cast<float>(static_cast<double>(logit_of(key)) - log_of_all);
    p.log_probs[at] = log_prob;
    p.ids[at] = id_of(key);
    keep(rank, log_prob, id_of(key));
  };
  // What is banned counts in the sum, and does not come.
  if (found) {
    for (unsigned all = __ballot_sync(kAllLanes, ban.wanted); all != 0; all &= all - 1) {
      const std::int32_t token =
          __shfl_sync(kAllLanes, ban.token, __ffs(static_cast<int>(all)) - 1);
      if (mine != 0 && id_of(mine) == token) mine = 0;
    }
    room.keys[lane] = mine;
    __syncwarp();
    int rank = 0;
#pragma unroll 8
    for (int other = 0; other < kWarp; ++other) rank += room.keys[other] > mine ? 1 : 0;
    if (mine != 0 && rank < p.count) write(rank, mine);
    return;
  }
  // One after another. There are as many: each stretch has kept enough.
  Key best = ~Key{0};
  int taken = 0;
  for (int rank = 0; rank < p.count;) {
    best = p.from.sorted ? findings.take(taken) : findings.below(best);
    if (best == 0) return;
    if (__any_sync(kAllLanes, ban.wanted && ban.token == id_of(best))) continue;
    if (lane == 0) write(rank, best);
    ++rank;
  }
}

// A kernel that does this for all rows.
void merge_stretches(CudaContext& ctx, const Merge& merge);

}  // namespace nunchi::kernels
