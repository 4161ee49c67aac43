// Where the time of a context's kernels goes, kernel by kernel, with the work that each had to do.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace nunchi {

// What a kernel cannot avoid: floating-point operations in products, bytes moved otherwise.
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
  // What is gathered: `work` only counts, so that nothing waits for a device to be timed.
  enum class Of { times, work };
  Profile() = default;
  explicit Profile(Of of) : of_(of) {}
  bool timed() const { return of_ == Of::times; }

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
  Of of_ = Of::times;
  std::map<std::string, ProfileEntry> entries_;
};

}  // namespace nunchi
