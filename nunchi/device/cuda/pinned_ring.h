// Staging memory for copies from the host to the GPU.
#pragma once

#if NUNCHI_CUDA

#include <cstddef>

struct CUstream_st;
struct CUevent_st;

namespace nunchi {

// A ring of pinned host memory in two halves. The GPU copies out of it asynchronously, so the host
// waits only if the copies out of a half have not finished when it reuses that half.
class PinnedRing {
 public:
  explicit PinnedRing(CUstream_st* stream);
  ~PinnedRing();
  PinnedRing(const PinnedRing&) = delete;
  PinnedRing& operator=(const PinnedRing&) = delete;

  static constexpr std::size_t kHalfBytes = std::size_t{8} << 20;
  // `bytes` is at most kHalfBytes. The caller fills the memory and queues its copy before the next
  // call.
  std::byte* take(std::size_t bytes);

 private:
  CUstream_st* stream_;
  std::byte* memory_ = nullptr;
  CUevent_st* copied_[2] = {nullptr, nullptr};  // recorded after the last copy out of each half
  int half_ = 0;                                // the half in use
  std::size_t used_bytes_ = 0;                  // of that half
};

}  // namespace nunchi

#endif
