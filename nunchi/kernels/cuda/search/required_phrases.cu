// One thread for each row, then one for each unit: only units with phrases have work, and it is
// little beside a step of the model.
#include "nunchi/kernels/required_phrases.h"

#include "nunchi/kernels/cuda/common/device.h"

namespace nunchi::kernels {
namespace {

constexpr unsigned kThreads = 32;

__device__ std::int64_t thread_number() {
  return std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
}

__global__ void phrase_candidates_kernel(const PhraseCandidates<float> p) {
  wait_for_previous_kernel();
  if (thread_number() < p.counts.rows(p.rows)) p.find(thread_number());
}

__global__ void list_candidates_kernel(const ChooseCandidates<float> p) {
  wait_for_previous_kernel();
  if (thread_number() < p.next.counts.rows(p.units * p.width)) p.list(thread_number());
}

__global__ void choose_candidates_kernel(const ChooseCandidates<float> p) {
  wait_for_previous_kernel();
  if (thread_number() < p.next.counts.units(p.units)) p.choose(thread_number());
}

}  // namespace

template <>
void compute<Cuda>(CudaContext& ctx, const PhraseCandidates<float>& p) {
  if (p.rows == 0) return;
  launch_overlapped(ctx, p.name(), phrase_candidates_kernel,
                    {blocks_for(p.rows, kThreads), kThreads}, p);
}

template <>
void compute<Cuda>(CudaContext& ctx, const ChooseCandidates<float>& p) {
  if (p.units == 0) return;
  launch_overlapped(ctx, p.name(), list_candidates_kernel,
                    {blocks_for(p.units * p.width, kThreads), kThreads}, p);
  launch_overlapped(ctx, p.name(), choose_candidates_kernel,
                    {blocks_for(p.units, kThreads), kThreads}, p);
}

}  // namespace nunchi::kernels
