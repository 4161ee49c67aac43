#include "nunchi/device/cuda/context.h"

#include <cuda_runtime_api.h>

#include <cstring>

#include "nunchi/device/cuda/check.h"
#include "nunchi/device/cuda/device_memory.h"
#include "nunchi/device/cuda/host_signal.h"

namespace nunchi {
namespace {

// Kernels are compiled for some architectures ("90a 100a"); no other GPU can run them.
void check_architecture(int device) {
  int major = 0, minor = 0;
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "a GPU");
  check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "a GPU");
  const std::string built = NUNCHI_CUDA_ARCHITECTURES, own = std::to_string(10 * major + minor);
  if ((" " + built).find(" " + own) != std::string::npos) return;
  throw Error("GPU " + std::to_string(device) + " is of compute capability " +
              std::to_string(major) + "." + std::to_string(minor) +
              ", and this program's kernels were built for " + built +
              " (90a: H100 and H200); --device cpu always works.");
}

int checked_device(int device) {
  const int count = cuda_device_count();
  if (count == 0) throw Error("there is no GPU here that CUDA can use; --device cpu always works.");
  if (device < 0 || device >= count) {
    throw Error("there is no GPU " + std::to_string(device) +
                " here; they are numbered from 0 to " + std::to_string(count - 1) + ".");
  }
  check_architecture(device);
  return device;
}

}  // namespace

int cuda_device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

Context<Device::cuda>::Context(const CudaOptions& options)
    : ContextBase(Device::cuda, options.precision,
                  make_device_memory(checked_device(options.device))),
      options_(options) {
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
  check_cuda(cudaStreamCreateWithFlags(&side_stream_, cudaStreamNonBlocking), "a stream");
  check_cuda(cudaEventCreate(&begin_), "an event");
  check_cuda(cudaEventCreate(&end_), "an event");
  check_cuda(cudaEventCreateWithFlags(&before_capture_, cudaEventDisableTiming), "an event");
  check_cuda(
      cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, options.device),
      "the device's size");
  pinned_ = std::make_unique<PinnedRing>(stream_);
  random_ = reinterpret_cast<RandomKey*>(arena().allocate(sizeof(RandomKey)));
  set_random({});
}

Context<Device::cuda>::~Context() {
  cudaStreamSynchronize(stream_);
  drop_caches();
  arena().release(reinterpret_cast<std::byte*>(const_cast<RandomKey*>(random_)));
  pinned_.reset();
  cudaEventDestroy(begin_);
  cudaEventDestroy(end_);
  cudaEventDestroy(before_capture_);
  cudaStreamDestroy(side_stream_);
  cudaStreamDestroy(stream_);
}

std::string Context<Device::cuda>::description() const {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, options_.device), "the device's name");
  return std::string(properties.name) + ", " + name_of(precision());
}

void Context<Device::cuda>::set_random(const RandomKey& key) {
  key_ = key;
  std::byte* from = pinned_->take(sizeof key);
  std::memcpy(from, &key, sizeof key);
  check_cuda(cudaMemcpyAsync(const_cast<RandomKey*>(random_), from, sizeof key,
                             cudaMemcpyHostToDevice, stream_),
             "an upload");
}

void Context<Device::cuda>::synchronize() {
  check_cuda(cudaStreamSynchronize(stream_), "earlier work on the GPU");
}

namespace {

class Graph final : public ContextBase::Replay {
 public:
  Graph(cudaGraph_t graph, CUstream_st* stream, Arena& arena, Arena::Held held)
      : stream_(stream), arena_(arena), held_(std::move(held)) {
    const cudaError_t status = cudaGraphInstantiate(&ready_, graph, 0);
    cudaGraphDestroy(graph);
    if (status != cudaSuccess) arena_.hand_back(held_);
    check_cuda(status, "a graph");
  }
  ~Graph() override {
    // Its memory must not be reused before the last replay has ended.
    cudaStreamSynchronize(stream_);
    cudaGraphExecDestroy(ready_);
    arena_.hand_back(held_);
  }
  void start() override { check_cuda(cudaGraphLaunch(ready_, stream_), "a graph"); }

 private:
  CUstream_st* stream_;
  Arena& arena_;
  Arena::Held held_;  // its working memory
  cudaGraphExec_t ready_ = nullptr;
};

}  // namespace

std::unique_ptr<ContextBase::Replay> Context<Device::cuda>::capture(
    const std::function<void()>& work) {
  check_cuda(cudaEventRecord(before_capture_, stream_), "a capture");
  check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "a capture");
  capturing_ = true;
  arena().begin_private();
  cudaGraph_t graph = nullptr;
  const auto end = [&] {
    capturing_ = false;
    const cudaError_t status = cudaStreamEndCapture(stream_, &graph);
    Arena::Held held = arena().end_private();
    return std::pair(status, std::move(held));
  };
  try {
    work();
  } catch (...) {
    arena().hand_back(end().second);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  auto [status, held] = end();
  if (status != cudaSuccess) arena().hand_back(held);
  check_cuda(status, "a capture");
  return std::make_unique<Graph>(graph, stream_, arena(), std::move(held));
}

std::unique_ptr<HostSignal> Context<Device::cuda>::make_host_signal() {
  return make_mapped_host_signal(stream_);
}

CUstream_st* Context<Device::cuda>::side_stream() {
  if (capturing_) {
    check_cuda(cudaEventSynchronize(before_capture_), "earlier work on the GPU");
  } else {
    synchronize();
  }
  return side_stream_;
}

void Context<Device::cuda>::start_clock(CUstream_st* stream) {
  check_cuda(cudaEventRecord(begin_, stream), "a clock");
}

double Context<Device::cuda>::stop_clock(CUstream_st* stream) {
  float milliseconds = 0;
  check_cuda(cudaEventRecord(end_, stream), "a clock");
  check_cuda(cudaEventSynchronize(end_), "a kernel");
  check_cuda(cudaEventElapsedTime(&milliseconds, begin_, end_), "a clock");
  return milliseconds * 1e-3;
}

}  // namespace nunchi
