#include "nunchi/device/cuda/context.h"

#include <cuda_runtime_api.h>

#include <cstring>

#include "nunchi/device/cuda/check.h"
#include "nunchi/device/cuda/cublaslt.h"
#include "nunchi/device/cuda/device_memory.h"
#include "nunchi/device/cuda/host_signal.h"

namespace nunchi {
namespace {

// A GPU can run the kernels only if they were compiled for its architecture ("90a 100a").
void check_architecture(int device) {
  int major = 0, minor = 0;
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
             "reading the compute capability");
  check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
             "reading the compute capability");
  const std::string built = NUNCHI_CUDA_ARCHITECTURES,
                    this_gpu = std::to_string(10 * major + minor);
  if ((" " + built).find(" " + this_gpu) != std::string::npos) return;
  throw Error("GPU " + std::to_string(device) + " has compute capability " + std::to_string(major) +
              "." + std::to_string(minor) + ", but this program's kernels were built for " + built +
              " (90a: H100 and H200); --device cpu always works.");
}

int checked_device(int device) {
  cublaslt();  // throws here, not in the first kernel, if the library is missing
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
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream");
  check_cuda(cudaStreamCreateWithFlags(&side_stream_, cudaStreamNonBlocking), "creating a stream");
  check_cuda(cudaEventCreate(&clock_start_), "creating an event");
  check_cuda(cudaEventCreate(&clock_stop_), "creating an event");
  check_cuda(cudaEventCreateWithFlags(&before_capture_, cudaEventDisableTiming),
             "creating an event");
  check_cuda(
      cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, options.device),
      "reading the number of multiprocessors");
  pinned_ = std::make_unique<PinnedRing>(stream_);
  device_random_key_ = reinterpret_cast<RandomKey*>(arena().allocate(sizeof(RandomKey)));
  set_random_key({});
}

Context<Device::cuda>::~Context() {
  cudaStreamSynchronize(stream_);
  drop_caches();
  arena().release(reinterpret_cast<std::byte*>(const_cast<RandomKey*>(device_random_key_)));
  pinned_.reset();
  cudaEventDestroy(clock_start_);
  cudaEventDestroy(clock_stop_);
  cudaEventDestroy(before_capture_);
  cudaStreamDestroy(side_stream_);
  cudaStreamDestroy(stream_);
}

std::string Context<Device::cuda>::description() const {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, options_.device), "reading the GPU's name");
  return std::string(properties.name) + ", " + name_of(precision());
}

void Context<Device::cuda>::set_random_key(const RandomKey& key) {
  host_random_key_ = key;
  std::byte* from = pinned_->take(sizeof key);
  std::memcpy(from, &key, sizeof key);
  check_cuda(cudaMemcpyAsync(const_cast<RandomKey*>(device_random_key_), from, sizeof key,
                             cudaMemcpyHostToDevice, stream_),
             "uploading the random key");
}

void Context<Device::cuda>::synchronize() {
  check_cuda(cudaStreamSynchronize(stream_), "earlier work on the GPU");
}

namespace {

class Graph final : public ContextBase::CapturedGraph {
 public:
  Graph(cudaGraph_t graph, CUstream_st* stream, Arena& arena, Arena::Blocks blocks)
      : stream_(stream), arena_(arena), blocks_(std::move(blocks)) {
    const cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    if (status != cudaSuccess) arena_.return_blocks(blocks_);
    check_cuda(status, "instantiating a graph");
  }
  ~Graph() override {
    // The graph's memory must not be reused before its last launch has finished.
    cudaStreamSynchronize(stream_);
    cudaGraphExecDestroy(executable_);
    arena_.return_blocks(blocks_);
  }
  void replay() override { check_cuda(cudaGraphLaunch(executable_, stream_), "launching a graph"); }

 private:
  CUstream_st* stream_;
  Arena& arena_;
  Arena::Blocks blocks_;  // the graph's working memory
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace

std::unique_ptr<ContextBase::CapturedGraph> Context<Device::cuda>::capture(
    const std::function<void()>& work) {
  check_cuda(cudaEventRecord(before_capture_, stream_), "capturing a graph");
  check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "capturing a graph");
  capturing_ = true;
  arena().begin_private();
  cudaGraph_t graph = nullptr;
  const auto end = [&] {
    capturing_ = false;
    const cudaError_t status = cudaStreamEndCapture(stream_, &graph);
    Arena::Blocks blocks = arena().end_private();
    return std::pair(status, std::move(blocks));
  };
  try {
    work();
  } catch (...) {
    arena().return_blocks(end().second);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  auto [status, blocks] = end();
  if (status != cudaSuccess) arena().return_blocks(blocks);
  check_cuda(status, "capturing a graph");
  return std::make_unique<Graph>(graph, stream_, arena(), std::move(blocks));
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
  check_cuda(cudaEventRecord(clock_start_, stream), "timing a kernel");
}

double Context<Device::cuda>::stop_clock(CUstream_st* stream) {
  float milliseconds = 0;
  check_cuda(cudaEventRecord(clock_stop_, stream), "timing a kernel");
  check_cuda(cudaEventSynchronize(clock_stop_), "running a kernel");
  check_cuda(cudaEventElapsedTime(&milliseconds, clock_start_, clock_stop_), "timing a kernel");
  return milliseconds * 1e-3;
}

}  // namespace nunchi
