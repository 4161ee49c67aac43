// A fast hash of 128 bits over any number of bytes: tells contents apart, keeps no secrets.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace nunchi {

struct Digest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  // 32 hexadecimal digits.
  std::string hex() const;
  friend bool operator==(const Digest&, const Digest&) = default;
};

// Four sums of 64 bits take 32 bytes at a time; a step is one-to-one in the sum and in the bytes,
// so that a change within 8 bytes is never lost on the way, and the end mixes all four into both
// words. How the bytes are divided over the calls does not matter.
class ContentHash {
 public:
  ContentHash& update(std::span<const std::byte> bytes);

  // A number, as its 8 bytes.
  ContentHash& update(std::uint64_t number) {
    const auto bytes = std::bit_cast<std::array<std::byte, sizeof number>>(number);
    return update(std::span<const std::byte>(bytes));
  }

  ContentHash& update(const Digest& digest) { return update(digest.low).update(digest.high); }

  // Of everything so far; more may follow.
  Digest digest() const;

 private:
  static constexpr std::size_t kStripe = 32;
  void absorb(const std::byte* stripe);

  std::array<std::uint64_t, 4> sums_{0x243F6A8885A308D3ull, 0x13198A2E03707344ull,
                                     0xA4093822299F31D0ull, 0x082EFA98EC4E6C89ull};
  std::array<std::byte, kStripe> rest_{};  // of the last stripe, not yet full
  std::size_t rest_size_ = 0;
  std::uint64_t length_ = 0;
};

}  // namespace nunchi
