#include "nunchi/base/process.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace nunchi {
namespace {

// The value of a field in a file with lines of the form "name : value"; empty if there is none.
std::string field_of(const char* file, const std::string& name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name)) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string::npos ? std::string() : line.substr(value);
  }
  return {};
}

// The number of bytes in a file of the control group, in MiB; 0 if there is none ("max").
double group_mib(const char* file) {
  double bytes = 0;
  std::ifstream(file) >> bytes;
  return bytes / (1 << 20);
}

}  // namespace

double peak_resident_mib() {
  return std::strtod(field_of("/proc/self/status", "VmHWM").c_str(), nullptr) / 1024.0;
}

double memory_mib() {
  const double machine =
      std::strtod(field_of("/proc/meminfo", "MemTotal").c_str(), nullptr) / 1024.0;
  const double limit = group_mib("/sys/fs/cgroup/memory.max");
  return limit > 0 && (machine == 0 || limit < machine) ? limit : machine;
}

double available_memory_mib() {
  const double machine =
      std::strtod(field_of("/proc/meminfo", "MemAvailable").c_str(), nullptr) / 1024.0;
  const double limit = group_mib("/sys/fs/cgroup/memory.max");
  if (limit == 0) return machine;
  const double left = std::max(limit - group_mib("/sys/fs/cgroup/memory.current"), 1.0);
  return machine > 0 ? std::min(machine, left) : left;
}

std::string processor_name() {
  const std::string name = field_of("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown processor" : name;
}

}  // namespace nunchi
