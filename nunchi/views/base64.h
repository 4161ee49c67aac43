// Bytes as text (RFC 4648).
#pragma once

#include <string>
#include <string_view>

namespace nunchi {

std::string to_base64(std::string_view bytes);

}  // namespace nunchi
