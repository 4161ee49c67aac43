#include <sched.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include "nunchi/base/error.h"
#include "nunchi/base/process.h"
#include "nunchi/device/context.h"

namespace nunchi {
namespace {

// Addresses without memory, opened to use from the bottom up.
class ReservedMemory final : public MemorySource {
 public:
  ReservedMemory() {
    // Where the system limits addresses, less is reserved.
    for (std::size_t bytes = std::size_t{1} << 40; bytes >= (std::size_t{1} << 28); bytes >>= 1) {
      void* address =
          ::mmap(nullptr, bytes + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (address == MAP_FAILED) continue;
      start_ = static_cast<std::byte*>(address);
      length_ = bytes + kHugePage;
      const auto value = reinterpret_cast<std::uintptr_t>(address);
      base_ = start_ + (kHugePage - value % kHugePage) % kHugePage;
      reserved_ = bytes;
      return;
    }
    throw Error("the system gives this process no address space (see ulimit -v).");
  }
  ~ReservedMemory() override { ::munmap(start_, length_); }
  ReservedMemory(const ReservedMemory&) = delete;
  ReservedMemory& operator=(const ReservedMemory&) = delete;

  std::byte* base() const override { return base_; }
  std::size_t reserved() const override { return reserved_; }

  void grow_to(std::size_t bytes) override {
    std::byte* from = base_ + open_;
    if (::mprotect(from, bytes - open_, PROT_READ | PROT_WRITE) != 0) {
      throw Error("out of memory: the system refused " + std::to_string((bytes - open_) >> 20) +
                  " MiB more (" + std::strerror(errno) + "), with " + std::to_string(open_ >> 20) +
                  " MiB in use.");
    }
    // Large pages spare the products most of their address look-ups. Only a wish: ignore a refusal.
    ::madvise(from, bytes - open_, MADV_HUGEPAGE);
    open_ = bytes;
  }
  void set_bytes(std::byte* begin, std::size_t bytes, unsigned char value) override {
    std::memset(begin, value, bytes);
  }

 private:
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;
  std::byte* start_ = nullptr;
  std::byte* base_ = nullptr;
  std::size_t length_ = 0;
  std::size_t reserved_ = 0;
  std::size_t open_ = 0;
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
    : ContextBase(Device::cpu, Precision::f32, std::make_unique<ReservedMemory>()),
      threads_(options.threads > 0 ? options.threads : usable_cores()),
      isa_(options.isa) {
  random_ = &key_;
}

}  // namespace nunchi
