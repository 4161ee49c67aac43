// XXH3: a fast 128-bit hash of any number of bytes. It is not cryptographic.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
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

// The digest does not depend on how the bytes are divided over calls of update().
class ContentHash {
 public:
  ContentHash();
  ~ContentHash();

  ContentHash& update(std::span<const std::byte> bytes);

  // A number, as its 8 bytes.
  ContentHash& update(std::uint64_t number) {
    const auto bytes = std::bit_cast<std::array<std::byte, sizeof number>>(number);
    return update(std::span<const std::byte>(bytes));
  }

  ContentHash& update(const Digest& digest) { return update(digest.low).update(digest.high); }

  // The hash of all bytes so far. More updates may follow.
  Digest digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nunchi
