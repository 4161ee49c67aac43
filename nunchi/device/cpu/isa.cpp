#include "nunchi/device/cpu/isa.h"

#include <array>
#include <cstdlib>
#include <string>

#include "nunchi/base/error.h"

namespace nunchi {
namespace {
constexpr std::array<const char*, 4> kNames = {"portable", "v2", "v3", "v4"};
}

const char* name_of(Isa isa) { return kNames[static_cast<std::size_t>(isa)]; }

Isa detected_isa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  const bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2")
#if !defined(__clang__)
                  && __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt") &&
                  __builtin_cpu_supports("movbe")
#endif
      ;
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? Isa::v4 : v3 ? Isa::v3 : v2 ? Isa::v2 : Isa::portable;
#else
  return Isa::portable;
#endif
}

Isa chosen_isa() {
  const char* pinned = std::getenv("NUNCHI_ISA");
  const Isa detected = detected_isa();
  if (pinned == nullptr || *pinned == '\0') return detected;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (std::string_view(pinned) != kNames[i]) continue;
    const Isa isa = static_cast<Isa>(i);
    if (isa > detected) {
      throw UsageError(std::string("NUNCHI_ISA asks for ") + pinned +
                       ", but this processor's best is " + name_of(detected) + ".");
    }
    return isa;
  }
  throw UsageError(std::string("NUNCHI_ISA is '") + pinned +
                   "'; it can be portable, v2, v3 or v4.");
}

}  // namespace nunchi
