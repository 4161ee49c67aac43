// A context on a GPU: one stream, its memory, and what kernels need to know of the card.
//
// Kernels are started in the stream and the host goes on; only copies towards the host wait. Memory
// that goes back to the arena may be handed out again at once, since all of it is used in the
// stream's order.
#pragma once

#if NUNCHI_CUDA

#include "nunchi/device/context.h"

struct CUstream_st;
struct CUevent_st;

namespace nunchi {

struct CudaOptions {
  int device = 0;
  Precision precision = Precision::bf16;
  // One algorithm per weight matrix whatever the rows, no split along K: a sentence's bits do not
  // depend on its batch.
  bool deterministic = false;
};

// GPUs that can be used; 0 where there is no driver.
int cuda_device_count();

// Memory of the host that the GPU reads by itself, used in turn: bytes that are on their way to the
// device stand here, so that the host need not wait for them.
class PinnedRing {
 public:
  explicit PinnedRing(CUstream_st* stream);
  ~PinnedRing();
  PinnedRing(const PinnedRing&) = delete;
  PinnedRing& operator=(const PinnedRing&) = delete;

  static constexpr std::size_t kHalf = std::size_t{8} << 20;
  // At most kHalf bytes, to be filled and read in the stream before the next call.
  std::byte* take(std::size_t bytes);

 private:
  CUstream_st* stream_;
  std::byte* memory_ = nullptr;
  CUevent_st* passed_[2] = {nullptr, nullptr};  // all copies out of this half were started before
  int half_ = 0;
  std::size_t used_ = 0;
};

template <>
class Context<Device::cuda> final : public ContextBase {
 public:
  // Throws Error when there is no such device or it cannot be used.
  explicit Context(const CudaOptions& options = {});
  ~Context() override;

  CUstream_st* stream() const { return stream_; }
  PinnedRing& pinned() { return *pinned_; }
  int multiprocessors() const { return multiprocessors_; }
  bool deterministic() const { return options_.deterministic; }
  int threads() const override { return usable_cores(); }
  std::string description() const override;
  double peak_memory_mib() const override {
    return static_cast<double>(arena().taken()) / (1 << 20);
  }
  void set_random(const RandomKey& key) override;
  // Waits until everything that was started is done.
  void synchronize() override;

  // A profile measures kernels one by one.
  bool replays() const override { return profile() == nullptr; }
  std::unique_ptr<Replay> capture(const std::function<void()>& work) override;
  bool capturing() const { return capturing_; }
  std::unique_ptr<Mailbox> make_mailbox() override;

  // Time on the device between the two calls, for a profile. Waits.
  void start_clock() { start_clock(stream_); }
  double stop_clock() { return stop_clock(stream_); }
  void start_clock(CUstream_st* stream);
  double stop_clock(CUstream_st* stream);
  // Beside the stream: what is started here is part of no capture. Waits until all that was started
  // before is done, so that memory that was given back is free indeed.
  CUstream_st* side_stream();

 private:
  CudaOptions options_;
  CUstream_st *stream_ = nullptr, *side_stream_ = nullptr;
  bool capturing_ = false;
  CUevent_st *begin_ = nullptr, *end_ = nullptr, *before_capture_ = nullptr;
  int multiprocessors_ = 0;
  std::unique_ptr<PinnedRing> pinned_;
};

using CudaContext = Context<Device::cuda>;

}  // namespace nunchi

#endif
