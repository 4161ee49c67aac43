#include "nunchi/kernels/cuda/bans.h"
#include "nunchi/kernels/cuda/logits.h"
#include "nunchi/kernels/search.h"

namespace nunchi::kernels::cuda {
namespace {

__device__ int lane_of_thread() { return static_cast<int>(threadIdx.x % kWarp); }

template <class N>
struct BanJob {
  BanRules rules;
  std::int64_t vocabulary, no_repeat_ngram;
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
  begin();
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
  const Ban other = ban_of_lane(rules, row, length);
  bans.ban(other.wanted, other.token);
  if (p.banned == nullptr) return;
  const double total = bans.total();
  if (lane == 0) p.banned[row] = total;
}

template <class T>
void ban_tokens(CudaContext& ctx, const BanTokens<T>& p) {
  if (p.rows == 0) return;
  const BanJob<Native<T>> job{.rules = rules_of(p),
                              .vocabulary = p.vocabulary,
                              .no_repeat_ngram = p.no_repeat_ngram,
                              .logits = native(p.logits),
                              .banned = p.banned};
  start_early(ctx, p.name(), ban_tokens_kernel<Native<T>>,
              {blocks_for(p.rows * kWarp, kBanThreads), kBanThreads}, job);
}

// One hypothesis with one more token.
struct Candidate {
  double score;
  std::int32_t row;
  std::int32_t place;  // among the row's candidates
};

// What is decided for each unit before it is known where its rows will stand.
struct Plan {
  Candidate* next;        // [units, beam] of units that go on
  std::int32_t* goes_on;  // [units] 1: this one does
};

// What a warp knows of a unit's candidates. What they come from is kept in shared memory where
// there is room, since choosing among them is one load after another.
struct Heads {
  // Each lane looks at its own rows alone.
  double* score;            // [width] of the row's first candidate that was not taken; -inf: none
  std::int32_t* place;      // [width]
  const double* before;     // [width] scores of the rows' hypotheses
  const float* log_probs;   // [width, candidates]
  const std::int32_t* ids;  // [width, candidates]
};

// Where the heads of units stand, one after another.
struct HeadRoom {
  bool keeps;
  std::size_t bytes;  // of a unit

  HeadRoom(const BeamStep<float>& p, std::int64_t units) {
    constexpr std::size_t kSharedBytes = 48 << 10;
    const auto width = static_cast<std::size_t>(p.width),
               all = width * static_cast<std::size_t>(p.candidates);
    const auto round = [](std::size_t size) { return (size + 7) / 8 * 8; };
    const std::size_t least = round(width * (sizeof(double) + sizeof(std::int32_t)));
    const std::size_t more =
        round(least + width * sizeof(double) + all * (sizeof(float) + sizeof(std::int32_t)));
    keeps = static_cast<std::size_t>(units) * more <= kSharedBytes;
    bytes = keeps ? more : least;
  }

  // Of active unit u, in the room of this number, by a warp.
  __device__ Heads at(const BeamStep<float>& p, double* memory, std::int64_t u,
                      std::int64_t room) const {
    double* begin = memory + static_cast<std::size_t>(room) * bytes / sizeof(double);
    const std::int64_t first_row = u * p.width, all = p.width * p.candidates;
    Heads heads{.score = begin,
                .place = reinterpret_cast<std::int32_t*>(begin + p.width),
                .before = p.from.score + first_row,
                .log_probs = p.log_probs + first_row * p.candidates,
                .ids = p.ids + first_row * p.candidates};
    if (!keeps) return heads;
    double* before = begin + p.width + (p.width + 1) / 2;
    auto* log_probs = reinterpret_cast<float*>(before + p.width);
    auto* ids = reinterpret_cast<std::int32_t*>(log_probs + all);
    for (std::int64_t j = lane_of_thread(); j < p.width; j += kWarp) before[j] = heads.before[j];
    for (std::int64_t i = lane_of_thread(); i < all; i += kWarp) {
      log_probs[i] = heads.log_probs[i];
      ids[i] = heads.ids[i];
    }
    __syncwarp();
    heads.before = before, heads.log_probs = log_probs, heads.ids = ids;
    return heads;
  }
};

// Everything about a unit that is the same for its rows.
struct Unit {
  std::int32_t number;
  std::int64_t first_row, length;

  __device__ Unit(const BeamStep<float>& p, std::int64_t u)
      : number(p.from.unit[u * p.width]),
        first_row(u * p.width),
        length(p.prefix_length[number] + p.now.tokens(p.generated)) {}
};

// The row's tokens so far, and the candidate's, by a warp.
__device__ void copy_history(const BeamStep<float>& p, const Unit& unit, const Candidate& c,
                             std::int32_t* tokens, float* scores) {
  const std::int32_t* from_tokens = p.from.tokens + c.row * p.stride;
  const float* from_scores = p.from.token_scores + c.row * p.stride;
  for (std::int64_t i = lane_of_thread(); i < unit.length; i += kWarp) {
    tokens[i] = from_tokens[i];
    scores[i] = from_scores[i];
  }
  if (lane_of_thread() == 0) {
    const std::int64_t at = c.row * p.candidates + c.place;
    tokens[unit.length] = p.ids[at];
    scores[unit.length] = p.log_probs[at];
  }
}

// A unit's candidates, best first: a merge of its rows, which are sorted. By a warp.
class Candidates {
 public:
  __device__ Candidates(const BeamStep<float>& p, const Unit& unit, const Heads& heads)
      : p_(p), first_row_(unit.first_row), heads_(heads) {
    for (std::int64_t j = lane_of_thread(); j < p.width; j += kWarp) move_to(j, 0);
    find_own();
  }

  // False when there is none left that can come at all.
  __device__ bool next(Candidate& best) {
    double score = own_score_;
    std::int32_t row = own_row_;
#pragma unroll
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
      const double other_score = __shfl_xor_sync(kAllLanes, score, offset);
      const std::int32_t other_row = __shfl_xor_sync(kAllLanes, row, offset);
      if (other_score > score || (other_score == score && other_row < row)) {
        score = other_score;
        row = other_row;
      }
    }
    if (!(score > -INFINITY)) return false;
    const int owner = row % kWarp;
    const std::int32_t place = __shfl_sync(kAllLanes, own_place_, owner);
    best = {score, static_cast<std::int32_t>(first_row_ + row), place};
    if (lane_of_thread() == owner) {
      move_to(row, place + 1);
      find_own();
    }
    return true;
  }

 private:
  __device__ void move_to(std::int64_t j, std::int32_t place) {
    double score = -INFINITY;
    if (place < p_.candidates) {
      score = heads_.before[j] + static_cast<double>(heads_.log_probs[j * p_.candidates + place]);
    }
    heads_.score[j] = score > -INFINITY ? score : -INFINITY;
    heads_.place[j] = place;
  }
  // The best of this lane's rows, of equals the first.
  __device__ void find_own() {
    own_score_ = -INFINITY;
    own_row_ = 0;
    for (std::int64_t j = lane_of_thread(); j < p_.width; j += kWarp) {
      if (heads_.score[j] > own_score_) {
        own_score_ = heads_.score[j];
        own_row_ = static_cast<std::int32_t>(j);
        own_place_ = heads_.place[j];
      }
    }
  }

  const BeamStep<float>& p_;
  std::int64_t first_row_;
  Heads heads_;
  double own_score_ = -INFINITY;
  std::int32_t own_row_ = 0, own_place_ = 0;
};

// Decides on one unit and writes what ended, by a warp.
__device__ void plan_unit(const BeamStep<float>& p, const Plan& plan, std::int64_t u,
                          const Heads& heads) {
  const int lane = lane_of_thread();
  const Unit unit(p, u);
  Candidates candidates(p, unit, heads);
  Candidate* next = plan.next + u * p.beam;
  const FinishedRows& to = p.finished;
  const std::int32_t finished_before = to.count[unit.number];
  std::int64_t finished = finished_before;
  const bool last_step = unit.length + 1 >= p.max_length[unit.number];

  const auto finish = [&](const Candidate& c, bool ended) {
    const std::int64_t at = unit.number * p.beam + finished++;
    copy_history(p, unit, c, to.tokens + at * p.stride, to.token_scores + at * p.stride);
    if (lane == 0) {
      to.score[at] = c.score;
      to.length[at] = static_cast<std::int32_t>(ended ? unit.length : unit.length + 1);
      to.ended[at] = ended ? 1 : 0;
    }
  };
  std::int64_t going_on = 0;
  Candidate c{}, last{};
  for (std::int64_t rank = 0; going_on < p.beam && candidates.next(c); ++rank) {
    if (heads.ids[(c.row - unit.first_row) * p.candidates + c.place] == p.end_token) {
      if (rank < p.beam && finished < p.beam) finish(c, true);
    } else if (last_step) {
      if (finished == p.beam) break;
      finish(c, false);
      ++going_on;
    } else {
      last = c;
      if (lane == 0) next[going_on] = c;
      ++going_on;
    }
  }
  const bool goes_on = finished < p.beam && !last_step && going_on > 0;
  // Places in the beam for which there was no candidate: nothing comes of them.
  last.score = -INFINITY;
  for (std::int64_t k = going_on + lane; goes_on && k < p.beam; k += kWarp) next[k] = last;
  if (lane == 0) {
    plan.goes_on[u] = goes_on ? 1 : 0;
    if (finished != finished_before) to.count[unit.number] = static_cast<std::int32_t>(finished);
  }
}

// One of a unit's rows where it will stand, by a warp.
__device__ void write_row(const BeamStep<float>& p, std::int64_t u, const Candidate& c,
                          std::int64_t row) {
  const Unit unit(p, u);
  copy_history(p, unit, c, p.to.tokens + row * p.stride, p.to.token_scores + row * p.stride);
  if (lane_of_thread() == 0) {
    p.to.score[row] = c.score;
    p.to.unit[row] = unit.number;
    p.parents[row] = c.row;
    p.next[row] = p.ids[c.row * p.candidates + c.place];
    p.row_source[row] = p.unit_source[unit.number];
  }
}

// To the host, which looks while the device goes on: whole, and past what would keep it here. Not
// st.release, which waits: a letter says nothing of other memory.
__device__ void send(std::int64_t* box, std::int64_t letter) {
  asm volatile("st.relaxed.sys.b64 [%0], %1;" ::"l"(box), "l"(letter) : "memory");
}

// What the next step starts from. One thread does this, where nobody reads the old numbers any more
// or they stand elsewhere.
__device__ void end_step(const BeamStep<float>& p, std::int64_t active) {
  *p.active = static_cast<std::int32_t>(active);
  p.tell(active, send);
  if (p.generated_next != nullptr) {
    *p.generated_next = static_cast<std::int32_t>(p.now.tokens(p.generated) + 1);
  }
}

// A step that has no unit to decide on says so.
__global__ void no_units_kernel(const BeamStep<float> p) {
  begin();
  end_step(p, 0);
}

constexpr int kFewUnits = kWarp, kFewThreads = 1024, kRowThreads = 256;

// All of a step in one block, a warp for each unit and then one for each row.
__global__ __launch_bounds__(kFewThreads) void few_units_kernel(const BeamStep<float> p, Plan plan,
                                                                HeadRoom room) {
  extern __shared__ double memory[];
  begin();
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = lane_of_thread();
  const std::int64_t units = p.now.units(p.units);
  if (warp < units) plan_unit(p, plan, warp, room.at(p, memory, warp, warp));
  __syncthreads();
  const unsigned going_on = __ballot_sync(kAllLanes, lane < units && plan.goes_on[lane] != 0);
  if (threadIdx.x == 0) end_step(p, __popc(going_on));
  for (std::int64_t i = warp; i < units * p.beam; i += kFewThreads / kWarp) {
    const std::int64_t u = i / p.beam;
    if ((going_on >> u & 1) == 0) continue;
    const std::int64_t before = __popc(going_on & ((1u << u) - 1));
    write_row(p, u, plan.next[i], before * p.beam + i % p.beam);
  }
}

// One warp for each unit.
__global__ void plan_units_kernel(const BeamStep<float> p, Plan plan, HeadRoom room) {
  extern __shared__ double memory[];
  begin();
  if (blockIdx.x >= p.now.units(p.units)) return;
  plan_unit(p, plan, blockIdx.x, room.at(p, memory, blockIdx.x, 0));
}

// One block for each unit; units before it that go on say where its rows stand.
__global__ __launch_bounds__(kRowThreads) void write_units_kernel(const BeamStep<float> p,
                                                                  Plan plan) {
  __shared__ int before_of_warp[kRowThreads / kWarp];
  begin();
  const std::int64_t u = blockIdx.x, units = p.now.units(p.units);
  if (u >= units) {
    if (units == 0 && u == 0 && threadIdx.x == 0) end_step(p, 0);
    return;
  }
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  int before = 0;
  for (std::int64_t v = threadIdx.x; v < u; v += kRowThreads) before += plan.goes_on[v];
  before = __reduce_add_sync(kAllLanes, before);
  if (lane_of_thread() == 0) before_of_warp[warp] = before;
  __syncthreads();
  before = 0;
  for (const int part : before_of_warp) before += part;
  const bool goes_on = plan.goes_on[u] != 0;
  if (u + 1 == units && threadIdx.x == 0) end_step(p, before + (goes_on ? 1 : 0));
  if (!goes_on) return;
  for (std::int64_t k = warp; k < p.beam; k += kRowThreads / kWarp) {
    write_row(p, u, plan.next[u * p.beam + k], before * p.beam + k);
  }
}

void beam_step(CudaContext& ctx, const BeamStep<float>& p) {
  if (p.units == 0) return start_early(ctx, p.name(), no_units_kernel, {1, 1}, p);
  const auto units = static_cast<std::size_t>(p.units);
  const ScratchMemory next(ctx.arena(),
                           units * static_cast<std::size_t>(p.beam) * sizeof(Candidate));
  const ScratchMemory goes_on(ctx.arena(), units * sizeof(std::int32_t));
  const Plan plan{.next = next.as<Candidate>(), .goes_on = goes_on.as<std::int32_t>()};
  const HeadRoom all(p, p.units), one(p, 1);
  if (p.units <= kFewUnits && all.keeps) {
    start_early(ctx, p.name(), few_units_kernel, {1, kFewThreads, units * all.bytes}, p, plan, all);
  } else {
    const auto blocks = static_cast<unsigned>(p.units);
    start_early(ctx, p.name(), plan_units_kernel, {blocks, kWarp, one.bytes}, p, plan, one);
    start_early(ctx, p.name(), write_units_kernel, {blocks, kRowThreads}, p, plan);
  }
}

}  // namespace

template <>
void compute(CudaContext& ctx, const BanTokens<float>& p) {
  ban_tokens(ctx, p);
}
template <>
void compute(CudaContext& ctx, const BanTokens<BFloat16>& p) {
  ban_tokens(ctx, p);
}
template <>
void compute(CudaContext& ctx, const BeamStep<float>& p) {
  beam_step(ctx, p);
}

}  // namespace nunchi::kernels::cuda
