// FNV-1a, a fast hash of bytes that does not resist deliberate collisions.
#pragma once

#include <cstdint>
#include <string_view>

namespace nunchi {

constexpr std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3;
  }
  return hash;
}

}  // namespace nunchi
