#include "nunchi/device/cuda/pinned_ring.h"

#include "nunchi/device/cuda/check.h"

namespace nunchi {

PinnedRing::PinnedRing(CUstream_st* stream) : stream_(stream) {
  void* memory = nullptr;
  check_cuda(cudaHostAlloc(&memory, 2 * kHalf, cudaHostAllocDefault),
             "allocating pinned memory for uploads");
  memory_ = static_cast<std::byte*>(memory);
  for (CUevent_st*& event : passed_) {
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
  }
}

PinnedRing::~PinnedRing() {
  for (CUevent_st* event : passed_) cudaEventDestroy(event);
  cudaFreeHost(memory_);
}

std::byte* PinnedRing::take(std::size_t bytes) {
  constexpr std::size_t kAlignment = 64;
  const std::size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (used_ + size > kHalf) {
    check_cuda(cudaEventRecord(passed_[half_], stream_), "an event");
    half_ = 1 - half_;
    used_ = 0;
    check_cuda(cudaEventSynchronize(passed_[half_]), "an upload");
  }
  std::byte* at = memory_ + static_cast<std::size_t>(half_) * kHalf + used_;
  used_ += size;
  return at;
}

}  // namespace nunchi
