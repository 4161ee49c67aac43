#include "nunchi/kernels/cuda/search/beam_units.h"

namespace nunchi::kernels {
namespace {

// The decision for each unit, made before the positions of its next rows are known.
struct Plan {
  Candidate* next;          // [units, beam] next rows of the units that continue
  std::int32_t* continues;  // [units] 1: the unit continues

  // Called by a whole warp.
  __device__ void decide(const BeamStep<float>& p, std::int64_t u, const RowHeads& heads) const {
    const bool does = plan_unit(p, u, heads, next + u * p.beam);
    if (lane_of_thread() == 0) continues[u] = does ? 1 : 0;
  }
};

// Shared memory for the heads of `units` units, one after another, with copies of their candidates
// where those fit.
struct HeadMemory {
  bool has_candidates;
  std::size_t bytes;  // per unit

  HeadMemory(const BeamStep<float>& p, std::int64_t units) {
    constexpr std::size_t kSharedBytes = 48 << 10;
    const auto width = static_cast<std::size_t>(p.width),
               all = width * static_cast<std::size_t>(p.candidates);
    const auto round = [](std::size_t size) { return (size + 7) / 8 * 8; };
    const std::size_t least = round(width * (sizeof(double) + sizeof(std::int32_t)));
    const std::size_t more =
        round(least + width * sizeof(double) + all * (sizeof(float) + sizeof(std::int32_t)));
    has_candidates = static_cast<std::size_t>(units) * more <= kSharedBytes;
    bytes = has_candidates ? more : least;
  }

  // The heads of active unit u, in the i-th section of the memory. Called by a whole warp.
  __device__ RowHeads at(const BeamStep<float>& p, double* memory, std::int64_t u,
                         std::int64_t i) const {
    double* begin = memory + static_cast<std::size_t>(i) * bytes / sizeof(double);
    const std::int64_t first_row = u * p.width, all = p.width * p.candidates;
    RowHeads heads{.score = begin,
                   .rank = reinterpret_cast<std::int32_t*>(begin + p.width),
                   .previous_score = p.from.score + first_row,
                   .log_probs = p.log_probs + first_row * p.candidates,
                   .ids = p.ids + first_row * p.candidates};
    if (!has_candidates) return heads;
    double* previous_score = begin + p.width + (p.width + 1) / 2;
    auto* log_probs = reinterpret_cast<float*>(previous_score + p.width);
    auto* ids = reinterpret_cast<std::int32_t*>(log_probs + all);
    for (std::int64_t j = lane_of_thread(); j < p.width; j += kWarp)
      previous_score[j] = heads.previous_score[j];
    for (std::int64_t c = lane_of_thread(); c < all; c += kWarp) {
      log_probs[c] = heads.log_probs[c];
      ids[c] = heads.ids[c];
    }
    __syncwarp();
    heads.previous_score = previous_score, heads.log_probs = log_probs, heads.ids = ids;
    return heads;
  }
};

// A step without units only reports.
__global__ void no_units_kernel(const BeamStep<float> p) {
  wait_for_previous_kernel();
  end_step(p, 0);
}

constexpr int kFewUnits = kWarp, kFewThreads = 1024, kRowThreads = 256;

// Computes a whole step in one block: one warp per unit, then one warp per row.
__global__ __launch_bounds__(kFewThreads) void few_units_kernel(const BeamStep<float> p, Plan plan,
                                                                HeadMemory heads) {
  extern __shared__ double memory[];
  wait_for_previous_kernel();
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = lane_of_thread();
  const std::int64_t units = p.counts.units(p.units), units_before = p.units_before();
  if (warp < units) plan.decide(p, warp, heads.at(p, memory, warp, warp));
  __syncthreads();
  const unsigned continuing = __ballot_sync(kAllLanes, lane < units && plan.continues[lane] != 0);
  if (threadIdx.x == 0) end_step(p, __popc(continuing));
  for (std::int64_t i = warp; i < units * p.beam; i += kFewThreads / kWarp) {
    const std::int64_t u = i / p.beam;
    if ((continuing >> u & 1) == 0) continue;
    const std::int64_t before = units_before + __popc(continuing & ((1u << u) - 1));
    write_row(p, u, plan.next[i], before * p.beam + i % p.beam);
  }
}

// One warp for each unit.
__global__ void plan_units_kernel(const BeamStep<float> p, Plan plan, HeadMemory heads) {
  extern __shared__ double memory[];
  wait_for_previous_kernel();
  if (blockIdx.x >= p.counts.units(p.units)) return;
  plan.decide(p, blockIdx.x, heads.at(p, memory, blockIdx.x, 0));
}

// One block for each unit, whose rows come after those of the continuing units before it.
__global__ __launch_bounds__(kRowThreads) void write_units_kernel(const BeamStep<float> p,
                                                                  Plan plan) {
  __shared__ int continuing_by_warp[kRowThreads / kWarp];
  wait_for_previous_kernel();
  const std::int64_t u = blockIdx.x, units = p.counts.units(p.units),
                     units_before = p.units_before();
  if (u >= units) {
    if (units == 0 && u == 0 && threadIdx.x == 0) end_step(p, 0);
    return;
  }
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  int before = 0;
  for (std::int64_t v = threadIdx.x; v < u; v += kRowThreads) before += plan.continues[v];
  before = __reduce_add_sync(kAllLanes, before);
  if (lane_of_thread() == 0) continuing_by_warp[warp] = before;
  __syncthreads();
  before = 0;
  for (const int part : continuing_by_warp) before += part;
  const bool continues = plan.continues[u] != 0;
  if (u + 1 == units && threadIdx.x == 0) end_step(p, before + (continues ? 1 : 0));
  if (!continues) return;
  for (std::int64_t k = warp; k < p.beam; k += kRowThreads / kWarp) {
    write_row(p, u, plan.next[u * p.beam + k], (units_before + before) * p.beam + k);
  }
}

}  // namespace

template <>
void compute<Cuda>(CudaContext& ctx, const BeamStep<float>& p) {
  if (p.units == 0) return launch_overlapped(ctx, p.name(), no_units_kernel, {1, 1}, p);
  const auto units = static_cast<std::size_t>(p.units);
  const ScratchMemory next(ctx.arena(),
                           units * static_cast<std::size_t>(p.beam) * sizeof(Candidate));
  const ScratchMemory continues(ctx.arena(), units * sizeof(std::int32_t));
  const Plan plan{.next = next.as<Candidate>(), .continues = continues.as<std::int32_t>()};
  const HeadMemory all(p, p.units), one(p, 1);
  if (p.units <= kFewUnits && all.has_candidates) {
    launch_overlapped(ctx, p.name(), few_units_kernel, {1, kFewThreads, units * all.bytes}, p, plan,
                      all);
  } else {
    const auto blocks = static_cast<unsigned>(p.units);
    launch_overlapped(ctx, p.name(), plan_units_kernel, {blocks, kWarp, one.bytes}, p, plan, one);
    launch_overlapped(ctx, p.name(), write_units_kernel, {blocks, kRowThreads}, p, plan);
  }
}

}  // namespace nunchi::kernels
