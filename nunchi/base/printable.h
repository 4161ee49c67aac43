// Text from files, made safe to print to a terminal.
#pragma once

#include <string>
#include <string_view>

namespace nunchi {

// At most 80 bytes of `text`, with control characters replaced by '?': a file must not be able to
// flood or control the terminal that shows an error about it.
inline std::string printable(std::string_view text) {
  constexpr std::size_t kMaxBytes = 80;
  std::string shown(text.substr(0, kMaxBytes));
  for (char& c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) c = '?';
  }
  return text.size() > kMaxBytes ? shown + "..." : shown;
}

}  // namespace nunchi
