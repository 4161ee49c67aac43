// Random numbers as a function of the position they are used at, not of a state: Philox 4x32-10
// (Salmon et al. 2011).
//
// A draw is identified by a key (seed, step) and a counter: the operation's fixed number in the
// model, the sentence's index in the global batch, the row in the sentence, the column. So neither
// the order of a batch nor the number of workers changes a draw.
#pragma once

#include <array>
#include <cstdint>

namespace nunchi {

struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
};

namespace philox {

inline constexpr std::uint32_t kMultiplier0 = 0xD2511F53u;
inline constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57u;
inline constexpr std::uint32_t kWeyl0 = 0x9E3779B9u;
inline constexpr std::uint32_t kWeyl1 = 0xBB67AE85u;
inline constexpr int kRounds = 10;

using Words = std::array<std::uint32_t, 4>;
using Key = std::array<std::uint32_t, 2>;

// Seed and step are mixed (splitmix64's finaliser), so that neighbouring keys are unrelated.
constexpr Key key_of(const RandomKey& random) {
  std::uint64_t z = random.seed + 0x9E3779B97F4A7C15ull * (random.step + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  return {static_cast<std::uint32_t>(z), static_cast<std::uint32_t>(z >> 32)};
}

// The 128 random bits for `counter` under `key`.
constexpr Words bits(Words counter, Key key) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

}  // namespace philox
}  // namespace nunchi
