#include "nunchi/data/content_hash.h"

#include <algorithm>
#include <cstring>

namespace nunchi {
namespace {

// The digits of pi after those that the sums begin with, made odd.
constexpr std::uint64_t kSpread = 0x452821E638D01377ull;
constexpr std::uint64_t kStir = 0xBE5466CF34E90C6Dull;

// One-to-one, and every bit of the result depends on every bit of `z` (splitmix64's end).
std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

}  // namespace

std::string Digest::hex() const {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint64_t word : {high, low}) {
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(word >> shift) & 15];
  }
  return text;
}

void ContentHash::absorb(const std::byte* stripe) {
  std::array<std::uint64_t, 4> words;
  static_assert(sizeof words == kStripe);
  std::memcpy(words.data(), stripe, kStripe);
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    sums_[i] = std::rotl(sums_[i] + words[i] * kSpread, 29) * kStir;
  }
}

ContentHash& ContentHash::update(std::span<const std::byte> bytes) {
  length_ += bytes.size();
  if (rest_size_ > 0) {
    const std::size_t count = std::min(bytes.size(), kStripe - rest_size_);
    std::copy_n(bytes.begin(), count, rest_.begin() + static_cast<std::ptrdiff_t>(rest_size_));
    rest_size_ += count;
    bytes = bytes.subspan(count);
    if (rest_size_ < kStripe) return *this;
    absorb(rest_.data());
    rest_size_ = 0;
  }
  for (; bytes.size() >= kStripe; bytes = bytes.subspan(kStripe)) absorb(bytes.data());
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
  rest_size_ = bytes.size();
  return *this;
}

Digest ContentHash::digest() const {
  ContentHash last = *this;
  // Zeros to a full stripe: the length below tells them from zeros that were there.
  std::fill(last.rest_.begin() + static_cast<std::ptrdiff_t>(rest_size_), last.rest_.end(),
            std::byte{0});
  last.absorb(last.rest_.data());
  Digest digest{mixed(length_ + kSpread), mixed(length_ + kStir)};
  for (const std::uint64_t sum : last.sums_) {
    digest.low = mixed(digest.low ^ sum) * kSpread;
    digest.high = mixed(digest.high + std::rotl(sum, 32)) * kStir;
  }
  digest.low = mixed(digest.low);
  digest.high = mixed(digest.high);
  return digest;
}

}  // namespace nunchi
