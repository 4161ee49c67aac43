#include "nunchi/base/process.h"

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

}  // namespace

double peak_resident_mib() {
  return std::strtod(field_of("/proc/self/status", "VmHWM").c_str(), nullptr) / 1024.0;
}

double memory_mib() {
  return std::strtod(field_of("/proc/meminfo", "MemTotal").c_str(), nullptr) / 1024.0;
}

std::string processor_name() {
  const std::string name = field_of("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown processor" : name;
}

}  // namespace nunchi
