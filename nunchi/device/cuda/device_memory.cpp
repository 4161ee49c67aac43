#include "nunchi/device/cuda/device_memory.h"

#include <cuda.h>

#include <algorithm>
#include <string>
#include <vector>

#include "nunchi/base/out_of_memory.h"
#include "nunchi/device/cuda/check.h"

namespace nunchi {
namespace {

// Driver functions are looked up at run time, so that the program also starts without a driver.
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
  decltype(&cuMemSetAccess) set_access =
      driver_function<decltype(&cuMemSetAccess)>("cuMemSetAccess");
};

// One reservation of GPU addresses, backed with memory from the bottom up.
class DeviceMemory final : public MemorySource {
 public:
  explicit DeviceMemory(int device) {
    check_cuda(cudaSetDevice(device), "selecting the GPU");
    check_cuda(cudaFree(nullptr), "initialising the GPU");
    properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties_.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    std::size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "reading the amount of GPU memory");
    reserved_ = (total + kGranularity - 1) / kGranularity * kGranularity;
    check(driver_.reserve(&base_, reserved_, 0, 0, 0), "reserving GPU addresses failed");
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
  // The alignment that cuBLASLt requires of its workspace.
  std::size_t alignment() const override { return 256; }

  void grow_to(std::size_t bytes) override {
    if (bytes <= backed_) return;
    // Each request to the driver is slow, so it asks for at least a quarter of the memory in use.
    const std::size_t needed = (bytes - backed_ + kGranularity - 1) / kGranularity * kGranularity;
    const std::size_t wanted =
        std::min(std::max(needed, backed_ / 4 / kGranularity * kGranularity), reserved_ - backed_);
    if (!back(wanted) && (wanted == needed || !back(needed))) {
      std::size_t free = 0, total = 0;
      cudaMemGetInfo(&free, &total);
      throw OutOfMemory(
          "out of GPU memory: " + std::to_string(needed >> 20) + " MiB more were requested, " +
          std::to_string(free >> 20) + " of " + std::to_string(total >> 20) + " MiB are free and " +
          std::to_string(backed_ >> 20) +
          " MiB are in use by this program; use smaller batches (training.batch_tokens, "
          "--batch-tokens).");
    }
  }

  void set_bytes(std::byte* begin, std::size_t bytes, unsigned char value) override {
    // This call is outside the stream's order, and queued kernels may still use released memory.
    check_cuda(cudaDeviceSynchronize(), "filling memory");
    check_cuda(cudaMemset(begin, value, bytes), "filling memory");
    check_cuda(cudaDeviceSynchronize(), "filling memory");
  }

 private:
  static constexpr std::size_t kGranularity = std::size_t{64} << 20;
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
    if (driver_.create(&block.handle, bytes, &properties_, 0) != CUDA_SUCCESS) return false;
    const CUdeviceptr address = base_ + backed_;
    check(driver_.map(address, bytes, 0, block.handle, 0), "mapping memory failed");
    CUmemAccessDesc access{};
    access.location = properties_.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    check(driver_.set_access(address, bytes, &access, 1), "enabling access to memory failed");
    blocks_.push_back(block);
    backed_ += bytes;
    return true;
  }

  Driver driver_;
  CUmemAllocationProp properties_{};
  CUdeviceptr base_ = 0;
  std::size_t reserved_ = 0, backed_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace

std::unique_ptr<MemorySource> make_device_memory(int device) {
  return std::make_unique<DeviceMemory>(device);
}

}  // namespace nunchi
