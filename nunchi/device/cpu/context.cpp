#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include "nunchi/base/out_of_memory.h"
#include "nunchi/base/process.h"
#include "nunchi/device/context.h"

namespace nunchi {
namespace {

// One reservation of addresses, backed with memory from the bottom up.
class ReservedMemory final : public MemorySource {
 public:
  ReservedMemory() {
    // Reserves less if the system limits the address space.
    for (std::size_t bytes = std::size_t{1} << 40; bytes >= (std::size_t{1} << 28); bytes >>= 1) {
      void* address =
          ::mmap(nullptr, bytes + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (address == MAP_FAILED) continue;
      mapping_ = static_cast<std::byte*>(address);
      mapping_bytes_ = bytes + kHugePage;
      const auto value = reinterpret_cast<std::uintptr_t>(address);
      base_ = mapping_ + (kHugePage - value % kHugePage) % kHugePage;
      // The system grants more than the machine has and ends the process when it is used.
      const auto machine = static_cast<std::size_t>(memory_mib() * (1 << 20));
      reserved_ = machine > 0 ? std::min(bytes, machine) : bytes;
      return;
    }
    throw Error("the system refused to reserve address space for this process (see ulimit -v).");
  }
  ~ReservedMemory() override { ::munmap(mapping_, mapping_bytes_); }
  ReservedMemory(const ReservedMemory&) = delete;
  ReservedMemory& operator=(const ReservedMemory&) = delete;

  std::byte* base() const override { return base_; }
  std::size_t reserved() const override { return reserved_; }

  void grow_to(std::size_t bytes) override {
    std::byte* from = base_ + backed_;
    if (::mprotect(from, bytes - backed_, PROT_READ | PROT_WRITE) != 0) {
      throw OutOfMemory("out of memory: the system refused " +
                        std::to_string((bytes - backed_) >> 20) + " MiB more (" +
                        std::strerror(errno) + "), with " + std::to_string(backed_ >> 20) +
                        " MiB in use.");
    }
    // Huge pages spare matrix products most of their TLB misses. Only a hint, so errors are
    // ignored.
    ::madvise(from, bytes - backed_, MADV_HUGEPAGE);
    backed_ = bytes;
  }
  void set_bytes(std::byte* begin, std::size_t bytes, unsigned char value) override {
    std::memset(begin, value, bytes);
  }

 private:
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;
  std::byte* mapping_ = nullptr;
  std::byte* base_ = nullptr;
  std::size_t mapping_bytes_ = 0;
  std::size_t reserved_ = 0;
  std::size_t backed_ = 0;
};

}  // namespace

int usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
  return static_cast<int>(std::thread::hardware_concurrency());
}

double Context<Device::cpu>::peak_memory_mib() const { return peak_resident_mib(); }

std::string Context<Device::cpu>::description() const {
  return processor_name() + ", " + std::to_string(threads_) +
         (threads_ == 1 ? " thread, " : " threads, ") + name_of(isa_) + " kernels";
}

Context<Device::cpu>::Context(const CpuOptions& options)
    : ContextBase(Device::cpu, options.precision, std::make_unique<ReservedMemory>()),
      threads_(options.threads > 0 ? options.threads : usable_cores()),
      isa_(options.isa),
      split_small_work_(options.split_small_work) {
  device_random_key_ = &host_random_key_;
}

}  // namespace nunchi
