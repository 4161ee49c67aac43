#include "nunchi/kernels/cuda/search/vocabulary_chunks.h"

namespace nunchi::kernels {
namespace {

constexpr int kThreads = 128;

// One warp for each row.
__global__ __launch_bounds__(kThreads) void merge_chunks_kernel(const Merge p) {
  __shared__ MergeBuffer buffers[kThreads / kWarp];
  const int r = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / kWarp);
  if (r >= p.rows) return;
  wait_for_previous_kernel();
  // merge_row() itself writes the tokens to p; nothing else is done with them.
  const auto ignore_token = [](int /*rank*/, float /*log_prob*/, std::int32_t /*id*/) {};
  merge_row(p, r, buffers[threadIdx.x / kWarp], ignore_token);
}

}  // namespace

void merge_chunks(CudaContext& ctx, const Merge& merge) {
  launch_overlapped(ctx, "merge_chunks", merge_chunks_kernel,
                    {blocks_for(std::int64_t{merge.rows} * kWarp, kThreads), kThreads}, merge);
}

}  // namespace nunchi::kernels
