// The time and the work of a context's kernels, added up by kernel name.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace nunchi {

// The least work that a kernel's task needs: floating-point operations for matrix products and
// attention, bytes read and written for memory-bound kernels.
struct Work {
  double flops = 0;
  double bytes = 0;
};

struct ProfileEntry {
  std::int64_t calls = 0;
  double seconds = 0;
  Work work;
};

class Profile {
 public:
  // `work` counts calls and work without times: timing makes the host wait for each kernel.
  enum class Kind { times, work };
  Profile() = default;
  explicit Profile(Kind kind) : kind_(kind) {}
  bool timed() const { return kind_ == Kind::times; }

  void add(const char* name, double seconds, const Work& work) {
    ProfileEntry& entry = entries_[name];
    ++entry.calls;
    entry.seconds += seconds;
    entry.work.flops += work.flops;
    entry.work.bytes += work.bytes;
  }
  const std::map<std::string, ProfileEntry>& entries() const { return entries_; }
  void clear() { entries_.clear(); }

 private:
  Kind kind_ = Kind::times;
  std::map<std::string, ProfileEntry> entries_;
};

}  // namespace nunchi
