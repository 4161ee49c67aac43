// A context on a GPU: one stream, its memory and the properties of the GPU that kernels need.
//
// Kernels are queued in the stream and the host continues; only copies to the host wait. The arena
// may reuse released memory at once, because all uses are in the stream's order.
#pragma once

#if NUNCHI_CUDA

#include "nunchi/device/context.h"
#include "nunchi/device/cuda/pinned_ring.h"

namespace nunchi {

struct CudaOptions {
  int device = 0;
  Precision precision = Precision::bf16;
  // Uses one GEMM algorithm per weight matrix for any number of rows, without split-K: results do
  // not depend on the batch, bit for bit.
  bool deterministic = false;
};

// The number of usable GPUs; 0 without a driver.
int cuda_device_count();

template <>
class Context<Device::cuda> final : public ContextBase {
 public:
  // Throws Error if the device does not exist or cannot be used.
  explicit Context(const CudaOptions& options = {});
  ~Context() override;

  CUstream_st* stream() const { return stream_; }
  PinnedRing& pinned() { return *pinned_; }
  int multiprocessors() const { return multiprocessors_; }
  bool deterministic() const { return options_.deterministic; }
  int threads() const override { return usable_cores(); }
  std::string description() const override;
  double peak_memory_mib() const override {
    return static_cast<double>(arena().committed()) / (1 << 20);
  }
  void set_random_key(const RandomKey& key) override;
  void synchronize() override;

  // False while a profile is set, because it times each kernel on its own, and while a trace is
  // set, because it copies values to the host between kernels.
  bool can_replay() const override { return profile() == nullptr && trace() == nullptr; }
  std::unique_ptr<CapturedGraph> capture(const std::function<void()>& work) override;
  bool capturing() const { return capturing_; }
  std::unique_ptr<HostSignal> make_host_signal() override;

  // Measure the GPU time between the two calls, in seconds, for a profile. stop_clock() waits for
  // the stream.
  void start_clock() { start_clock(stream_); }
  double stop_clock() { return stop_clock(stream_); }
  void start_clock(CUstream_st* stream);
  double stop_clock(CUstream_st* stream);
  // A second stream, whose work is never part of a capture. Waits until all earlier work is done,
  // so that no kernel still uses memory that was released.
  CUstream_st* side_stream();

 private:
  CudaOptions options_;
  CUstream_st *stream_ = nullptr, *side_stream_ = nullptr;
  bool capturing_ = false;
  CUevent_st *clock_start_ = nullptr, *clock_stop_ = nullptr, *before_capture_ = nullptr;
  int multiprocessors_ = 0;
  std::unique_ptr<PinnedRing> pinned_;
};

using CudaContext = Context<Device::cuda>;

}  // namespace nunchi

#endif
