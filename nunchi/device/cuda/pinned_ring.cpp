#include "nunchi/device/cuda/pinned_ring.h"

#include "nunchi/device/cuda/check.h"

namespace nunchi {

PinnedRing::PinnedRing(CUstream_st* stream) : stream_(stream) {
  void* memory = nullptr;
  check_cuda(cudaHostAlloc(&memory, 2 * kHalfBytes, cudaHostAllocDefault),
             "allocating pinned memory for uploads");
  memory_ = static_cast<std::byte*>(memory);
  for (CUevent_st*& event : copied_) {
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
               "creating an upload event");
  }
}

PinnedRing::~PinnedRing() {
  for (CUevent_st* event : copied_) cudaEventDestroy(event);
  cudaFreeHost(memory_);
}

std::byte* PinnedRing::take(std::size_t bytes) {
  constexpr std::size_t kAlignment = 64;
  const std::size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (used_bytes_ + size > kHalfBytes) {
    check_cuda(cudaEventRecord(copied_[half_], stream_), "recording an upload event");
    half_ = 1 - half_;
    used_bytes_ = 0;
    check_cuda(cudaEventSynchronize(copied_[half_]), "waiting for an upload to the GPU");
  }
  std::byte* memory = memory_ + static_cast<std::size_t>(half_) * kHalfBytes + used_bytes_;
  used_bytes_ += size;
  return memory;
}

}  // namespace nunchi
