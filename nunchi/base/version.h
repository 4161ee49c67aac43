// The version of the library and the program, and how they were built.
#pragma once

#include <string_view>

namespace nunchi {

std::string_view version();  // "0.1.0", as CMakeLists.txt sets it
// The commit that was built, e.g. "5b5bef6d3a21"; "unknown" if the sources are not a git checkout.
std::string_view commit();
// CUDA's version and the GPU architectures, e.g. "13.0.88 for 90a"; empty without CUDA.
std::string_view cuda_build();

}  // namespace nunchi
