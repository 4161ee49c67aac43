// The version of the library and the program, as CMakeLists.txt sets it.
#pragma once

#include <string_view>

namespace nunchi {

std::string_view version();  // "0.1.0"

}  // namespace nunchi
