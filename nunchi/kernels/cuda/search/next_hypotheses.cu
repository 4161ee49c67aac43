// A search step in two kernels: the product that finds candidates (projection_top_tokens.cu), and a
// kernel with one block per unit. A block merges the candidates of its rows, chooses those that
// continue, waits until the blocks of earlier units have chosen, and writes its rows after theirs.
//
// Each block takes the next unit from a counter when it starts, so that it only waits for blocks
// that are already running.
#include "nunchi/kernels/next_hypotheses.h"

#include "nunchi/kernels/cuda/search/beam_units.h"
#include "nunchi/kernels/cuda/search/tiled_top.h"

namespace nunchi::kernels {
namespace {

constexpr int kMaxWidth = 16, kMaxWarps = 8;

// A unit's decision, published for the blocks of later units. 0: pending.
enum Decision : std::int32_t { kFinished = 1, kContinues = 2 };

__global__ __launch_bounds__(kMaxWarps* kWarp) void choose_kernel(const Merge merge,
                                                                  const BeamStep<float> p,
                                                                  volatile std::int32_t* decision,
                                                                  std::int32_t* next_unit) {
  __shared__ double score[kMaxWidth], previous_score[kMaxWidth];
  __shared__ std::int32_t ranks[kMaxWidth], ids[kMaxWidth * kMaxWidth];
  __shared__ float log_probs[kMaxWidth * kMaxWidth];
  __shared__ Candidate next[kMaxWidth];
  __shared__ MergeBuffer buffers[kMaxWarps];
  __shared__ int units_before_by_warp[kMaxWarps];
  __shared__ bool continues;
  __shared__ std::int32_t unit;
  wait_for_previous_kernel();
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp,
            warps = static_cast<int>(blockDim.x) / kWarp;
  if (thread == 0) unit = atomicAdd(next_unit, 1);
  __syncthreads();
  const std::int64_t u = unit, units = p.counts.units(p.units), first_unit = p.units_before();
  if (u >= units) {
    if (units == 0 && u == 0 && thread == 0) end_step(p, 0);
    return;
  }
  const int first_row = static_cast<int>(u * p.width);
  for (int j = warp; j < p.width; j += warps) {
    __syncwarp();  // the previous row has finished with the buffer
    merge_row(merge, first_row + j, buffers[warp], [&](int rank, float log_prob, std::int32_t id) {
      log_probs[j * p.candidates + rank] = log_prob;
      ids[j * p.candidates + rank] = id;
    });
    if (lane_of_thread() == 0) previous_score[j] = p.from.score[first_row + j];
  }
  __syncthreads();
  if (warp == 0) {
    const bool unit_continues =
        plan_unit(p, u, {score, ranks, previous_score, log_probs, ids}, next);
    if (thread == 0) {
      continues = unit_continues;
      decision[u] = unit_continues ? kContinues : kFinished;
    }
  }
  int units_before = 0;
  for (std::int64_t v = thread; v < u; v += blockDim.x) {
    std::int32_t published = 0;
    while ((published = decision[v]) == 0) {
    }
    units_before += published == kContinues ? 1 : 0;
  }
  __syncwarp();
  units_before = __reduce_add_sync(kAllLanes, units_before);
  if (lane_of_thread() == 0) units_before_by_warp[warp] = units_before;
  __syncthreads();
  units_before = 0;
  for (int w = 0; w < warps; ++w) units_before += units_before_by_warp[w];
  if (u + 1 == units && thread == 0) end_step(p, units_before + (continues ? 1 : 0));
  if (!continues) return;
  for (std::int64_t k = warp; k < p.beam; k += warps) {
    write_row(p, u, next[k], (first_unit + units_before) * p.beam + k);
  }
}

// Both kernels as one profile entry.
struct FusedNextHypotheses {
  const NextHypotheses<BFloat16>& all;
  const char* name() const { return "next_hypotheses"; }
  Work work() const { return all.work(); }
};

bool can_fuse(const CudaContext& ctx, const NextHypotheses<BFloat16>& p) {
  return p.step.units > 0 && p.step.width <= kMaxWidth && p.step.beam <= kMaxWidth &&
         p.step.candidates <= kMaxWidth && p.step.candidates == p.top.allowed.top.count &&
         p.step.units * p.step.width == p.top.allowed.top.rows &&
         p.step.ids == p.top.allowed.top.ids && p.step.log_probs == p.top.allowed.top.log_probs &&
         can_find_in_tiles(ctx, p.top);
}

template <class Target>
void compute(ContextOf<Target>& ctx, const FusedNextHypotheses& p) {
  const BeamStep<float>& step = p.all.step;
  const auto units = static_cast<std::size_t>(step.units);
  const ScratchMemory numbers(ctx.arena(), (units + 1) * sizeof(std::int32_t));
  auto* decision = numbers.as<std::int32_t>();
  const TiledTop found(ctx, p.all.top, {decision, static_cast<int>(units) + 1});
  const std::int64_t warps = std::min<std::int64_t>(std::max(step.width, step.beam), kMaxWarps);
  launch_overlapped(ctx, "next_hypotheses", choose_kernel,
                    {static_cast<unsigned>(units), static_cast<unsigned>(warps * kWarp)},
                    found.merge(), step, decision, decision + units);
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const NextHypotheses<T>& p) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (can_fuse(ctx, p)) return run(ctx, FusedNextHypotheses{p});
  }
  run(ctx, p.top);
  run(ctx, p.step);
}
template void compute<Cuda>(CudaContext&, const NextHypotheses<float>&);
template void compute<Cuda>(CudaContext&, const NextHypotheses<BFloat16>&);

}  // namespace nunchi::kernels
