#include "nunchi/base/version.h"

#include "nunchi/base/commit.h"  // written by cmake/Commit.cmake

namespace nunchi {

std::string_view version() { return NUNCHI_VERSION; }
std::string_view commit() { return NUNCHI_COMMIT; }
std::string_view cuda_build() { return NUNCHI_CUDA_BUILD; }

}  // namespace nunchi
