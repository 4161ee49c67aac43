#include "nunchi/kernels/cuda/search/beam_units.h"

namespace nunchi::kernels {
namespace {

// What is decided for each unit before it is known where its rows will stand.
struct Plan {
  Candidate* next;        // [units, beam] of units that go on
  std::int32_t* goes_on;  // [units] 1: this one does

  // By a warp.
  __device__ void decide(const BeamStep<float>& p, std::int64_t u, const Heads& heads) const {
    const bool does = plan_unit(p, u, heads, next + u * p.beam);
    if (lane_of_thread() == 0) goes_on[u] = does ? 1 : 0;
  }
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

// A step that has no unit to decide on says so.
__global__ void no_units_kernel(const BeamStep<float> p) {
  wait_for_previous_kernel();
  end_step(p, 0);
}

constexpr int kFewUnits = kWarp, kFewThreads = 1024, kRowThreads = 256;

// All of a step in one block, a warp for each unit and then one for each row.
__global__ __launch_bounds__(kFewThreads) void few_units_kernel(const BeamStep<float> p, Plan plan,
                                                                HeadRoom room) {
  extern __shared__ double memory[];
  wait_for_previous_kernel();
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = lane_of_thread();
  const std::int64_t units = p.now.units(p.units);
  if (warp < units) plan.decide(p, warp, room.at(p, memory, warp, warp));
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
  wait_for_previous_kernel();
  if (blockIdx.x >= p.now.units(p.units)) return;
  plan.decide(p, blockIdx.x, room.at(p, memory, blockIdx.x, 0));
}

// One block for each unit; units before it that go on say where its rows stand.
__global__ __launch_bounds__(kRowThreads) void write_units_kernel(const BeamStep<float> p,
                                                                  Plan plan) {
  __shared__ int before_of_warp[kRowThreads / kWarp];
  wait_for_previous_kernel();
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

}  // namespace

template <>
void compute<Cuda>(CudaContext& ctx, const BeamStep<float>& p) {
  if (p.units == 0) return launch_overlapped(ctx, p.name(), no_units_kernel, {1, 1}, p);
  const auto units = static_cast<std::size_t>(p.units);
  const ScratchMemory next(ctx.arena(),
                           units * static_cast<std::size_t>(p.beam) * sizeof(Candidate));
  const ScratchMemory goes_on(ctx.arena(), units * sizeof(std::int32_t));
  const Plan plan{.next = next.as<Candidate>(), .goes_on = goes_on.as<std::int32_t>()};
  const HeadRoom all(p, p.units), one(p, 1);
  if (p.units <= kFewUnits && all.keeps) {
    launch_overlapped(ctx, p.name(), few_units_kernel, {1, kFewThreads, units * all.bytes}, p, plan,
                      all);
  } else {
    const auto blocks = static_cast<unsigned>(p.units);
    launch_overlapped(ctx, p.name(), plan_units_kernel, {blocks, kWarp, one.bytes}, p, plan, one);
    launch_overlapped(ctx, p.name(), write_units_kernel, {blocks, kRowThreads}, p, plan);
  }
}

}  // namespace nunchi::kernels
