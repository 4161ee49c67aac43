#include "cli/waiting_threads.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace nunchi::cli {

void let_idle_threads_sleep(char** argv) {
  constexpr const char* kSpinCount = "3000";
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  if (std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  std::error_code failure;
  // Not /proc/self/exe itself: ps would show the process as "exe".
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure || ::setenv("GOMP_SPINCOUNT", kSpinCount, 1) != 0) return;
  ::execv(program.c_str(), argv);
}

}  // namespace nunchi::cli
