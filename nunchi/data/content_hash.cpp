#include "nunchi/data/content_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace nunchi {

struct ContentHash::State {
  XXH3_state_t hash;
};

std::string Digest::hex() const {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint64_t word : {high, low}) {
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(word >> shift) & 15];
  }
  return text;
}

ContentHash::ContentHash() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->hash);
}

ContentHash::~ContentHash() = default;

ContentHash& ContentHash::update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->hash, bytes.data(), bytes.size());
  return *this;
}

Digest ContentHash::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->hash);
  return {.low = hash.low64, .high = hash.high64};
}

}  // namespace nunchi
