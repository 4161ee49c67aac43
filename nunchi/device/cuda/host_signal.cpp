#include "nunchi/device/cuda/host_signal.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "nunchi/device/cuda/check.h"

namespace nunchi {
namespace {

// Lets the core's other hardware thread run while this one polls.
void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class MappedHostSignal final : public HostSignal {
 public:
  explicit MappedHostSignal(CUstream_st* stream) : stream_(stream) {
    void* memory = nullptr;
    check_cuda(cudaHostAlloc(&memory, kSlots * sizeof(std::int64_t), cudaHostAllocMapped),
               "allocating mapped memory");
    slots_ = static_cast<std::int64_t*>(memory);
    clear();
  }
  ~MappedHostSignal() override {
    cudaStreamSynchronize(stream_);
    cudaFreeHost(slots_);
  }
  MappedHostSignal(const MappedHostSignal&) = delete;
  MappedHostSignal& operator=(const MappedHostSignal&) = delete;

  std::int64_t* slots() override { return slots_; }
  void clear() override { std::fill_n(slots_, kSlots, std::int64_t{-1}); }

  std::int32_t wait(std::int32_t step) override {
    const std::atomic_ref<std::int64_t> slot(slots_[step % kSlots]);
    constexpr int kPollsBetweenQueries = 1024;
    std::int64_t message = 0;
    const auto has_arrived = [&] {
      message = slot.load(std::memory_order_acquire);
      return step_of(message) == step;
    };
    while (true) {
      for (int polls = 0; polls < kPollsBetweenQueries; ++polls, pause_briefly()) {
        if (has_arrived()) return value_of(message);
      }
      // A GPU that has failed or is idle sends no more messages.
      const cudaError_t status = cudaStreamQuery(stream_);
      if (status == cudaErrorNotReady) continue;
      check_cuda(status, "earlier work on the GPU");
      if (!has_arrived()) {
        throw Error("the GPU finished step " + std::to_string(step) +
                    " without reporting (internal error).");
      }
    }
  }

 private:
  CUstream_st* stream_;
  std::int64_t* slots_ = nullptr;
};

}  // namespace

std::unique_ptr<HostSignal> make_mapped_host_signal(CUstream_st* stream) {
  return std::make_unique<MappedHostSignal>(stream);
}

}  // namespace nunchi
