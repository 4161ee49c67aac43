#include "nunchi/device/cuda/context.h"

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "nunchi/device/cuda/check.h"

namespace nunchi {
namespace {

// The driver's own functions are looked up while the program runs: it starts without a driver too.
template <class F>
F driver_function(const char* name) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check_cuda(
      cudaGetDriverEntryPointByVersion(name, &address, CUDART_VERSION, cudaEnableDefault, &found),
      name);
  if (address == nullptr) throw Error(std::string("the CUDA driver is too old: it has no ") + name);
  return reinterpret_cast<F>(address);
}

struct Driver {
  decltype(&cuMemAddressReserve) reserve =
      driver_function<decltype(&cuMemAddressReserve)>("cuMemAddressReserve");
  decltype(&cuMemAddressFree) unreserve =
      driver_function<decltype(&cuMemAddressFree)>("cuMemAddressFree");
  decltype(&cuMemCreate) create = driver_function<decltype(&cuMemCreate)>("cuMemCreate");
  decltype(&cuMemRelease) release = driver_function<decltype(&cuMemRelease)>("cuMemRelease");
  decltype(&cuMemMap) map = driver_function<decltype(&cuMemMap)>("cuMemMap");
  decltype(&cuMemUnmap) unmap = driver_function<decltype(&cuMemUnmap)>("cuMemUnmap");
  decltype(&cuMemSetAccess) allow = driver_function<decltype(&cuMemSetAccess)>("cuMemSetAccess");
};

// Addresses of the card, backed from the bottom up.
class DeviceMemory final : public MemorySource {
 public:
  explicit DeviceMemory(int device) {
    check_cuda(cudaSetDevice(device), "this GPU cannot be used");
    check_cuda(cudaFree(nullptr), "this GPU cannot be used");
    place_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    place_.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    std::size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "how much memory is there");
    reserved_ = (total + kStep - 1) / kStep * kStep;
    check(driver_.reserve(&base_, reserved_, 0, 0, 0), "no addresses for the GPU's memory");
  }
  ~DeviceMemory() override {
    std::size_t offset = 0;
    for (const Block& block : blocks_) {
      driver_.unmap(base_ + offset, block.bytes);
      driver_.release(block.handle);
      offset += block.bytes;
    }
    driver_.unreserve(base_, reserved_);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::byte* base() const override { return reinterpret_cast<std::byte*>(base_); }
  std::size_t reserved() const override { return reserved_; }
  // What cuBLASLt asks of its workspace.
  std::size_t alignment() const override { return 256; }

  void grow_to(std::size_t bytes) override {
    if (bytes <= backed_) return;
    // In steps that grow with what is there: the driver is slow to give memory.
    std::size_t more = (bytes - backed_ + kStep - 1) / kStep * kStep;
    const std::size_t wish =
        std::min(std::max(more, backed_ / 4 / kStep * kStep), reserved_ - backed_);
    if (!back(wish) && (wish == more || !back(more))) {
      std::size_t free = 0, total = 0;
      cudaMemGetInfo(&free, &total);
      throw Error("out of GPU memory: " + std::to_string(more >> 20) +
                  " MiB more were asked for, " + std::to_string(free >> 20) + " of " +
                  std::to_string(total >> 20) + " MiB are free and " +
                  std::to_string(backed_ >> 20) +
                  " MiB are in use here; use smaller batches (training.batch_tokens, "
                  "--batch-tokens).");
    }
  }

  void set_bytes(std::byte* begin, std::size_t bytes, unsigned char value) override {
    // Kernels of the stream may still use what was released: this is no part of its order.
    check_cuda(cudaDeviceSynchronize(), "filling memory");
    check_cuda(cudaMemset(begin, value, bytes), "filling memory");
    check_cuda(cudaDeviceSynchronize(), "filling memory");
  }

 private:
  static constexpr std::size_t kStep = std::size_t{64} << 20;
  struct Block {
    CUmemGenericAllocationHandle handle;
    std::size_t bytes;
  };

  static void check(CUresult result, const char* what) {
    if (result != CUDA_SUCCESS) {
      throw Error(std::string("CUDA: ") + what + " (error " + std::to_string(result) + ").");
    }
  }

  bool back(std::size_t bytes) {
    Block block{0, bytes};
    if (driver_.create(&block.handle, bytes, &place_, 0) != CUDA_SUCCESS) return false;
    const CUdeviceptr at = base_ + backed_;
    check(driver_.map(at, bytes, 0, block.handle, 0), "memory cannot be mapped");
    CUmemAccessDesc access{};
    access.location = place_.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    check(driver_.allow(at, bytes, &access, 1), "memory cannot be used");
    blocks_.push_back(block);
    backed_ += bytes;
    return true;
  }

  Driver driver_;
  CUmemAllocationProp place_{};
  CUdeviceptr base_ = 0;
  std::size_t reserved_ = 0, backed_ = 0;
  std::vector<Block> blocks_;
};

// Kernels are built for some architectures ("90a 100a"); on another card none would start.
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

PinnedRing::PinnedRing(CUstream_st* stream) : stream_(stream) {
  void* memory = nullptr;
  check_cuda(cudaHostAlloc(&memory, 2 * kHalf, cudaHostAllocDefault), "memory for uploads");
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

Context<Device::cuda>::Context(const CudaOptions& options)
    : ContextBase(Device::cuda, options.precision,
                  std::make_unique<DeviceMemory>(checked_device(options.device))),
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
  check_cuda(cudaStreamSynchronize(stream_), "what was started before");
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
    // Nobody else may get its memory before it has ended.
    cudaStreamSynchronize(stream_);
    cudaGraphExecDestroy(ready_);
    arena_.hand_back(held_);
  }
  void start() override { check_cuda(cudaGraphLaunch(ready_, stream_), "a graph"); }

 private:
  CUstream_st* stream_;
  Arena& arena_;
  Arena::Held held_;  // what it works in
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

namespace {

// Leaves the core to whoever shares it, for as long as a look at memory takes.
void pause_a_little() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// In memory of the host that the device writes to.
class MappedMailbox final : public ContextBase::Mailbox {
 public:
  explicit MappedMailbox(CUstream_st* stream) : stream_(stream) {
    void* memory = nullptr;
    check_cuda(cudaHostAlloc(&memory, kBoxes * sizeof(std::int64_t), cudaHostAllocMapped),
               "memory for what kernels tell");
    boxes_ = static_cast<std::int64_t*>(memory);
    clear();
  }
  ~MappedMailbox() override {
    cudaStreamSynchronize(stream_);
    cudaFreeHost(boxes_);
  }
  MappedMailbox(const MappedMailbox&) = delete;
  MappedMailbox& operator=(const MappedMailbox&) = delete;

  std::int64_t* boxes() override { return boxes_; }
  void clear() override { std::fill_n(boxes_, kBoxes, std::int64_t{-1}); }

  std::int32_t wait(std::int32_t key) override {
    const std::atomic_ref<std::int64_t> box(boxes_[key % kBoxes]);
    constexpr int kBetweenQuestions = 1024;
    std::int64_t letter = 0;
    const auto has_come = [&] {
      letter = box.load(std::memory_order_acquire);
      return letter >> 32 == key;
    };
    while (true) {
      for (int tries = 0; tries < kBetweenQuestions; ++tries, pause_a_little()) {
        if (has_come()) return static_cast<std::int32_t>(letter);
      }
      // A device that has failed or has nothing left to do writes no letters.
      const cudaError_t status = cudaStreamQuery(stream_);
      if (status == cudaErrorNotReady) continue;
      check_cuda(status, "what was started before");
      if (!has_come()) throw Error("a step of the search ended without a word.");
    }
  }

 private:
  CUstream_st* stream_;
  std::int64_t* boxes_ = nullptr;
};

}  // namespace

std::unique_ptr<ContextBase::Mailbox> Context<Device::cuda>::make_mailbox() {
  return std::make_unique<MappedMailbox>(stream_);
}

CUstream_st* Context<Device::cuda>::side_stream() {
  if (capturing_) {
    check_cuda(cudaEventSynchronize(before_capture_), "what was started before");
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
