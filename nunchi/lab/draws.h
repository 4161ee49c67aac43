// Random numbers for generated data: a sequence that depends on the seed and a stream's number.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <utility>

#include "nunchi/base/random.h"

namespace nunchi::lab {

class Draws {
 public:
  Draws(std::uint64_t seed, std::uint32_t stream)
      : key_(philox::key_of({.seed = seed, .step = 0x6c616200ull + stream})) {}

  std::uint32_t bits() {
    if (used_ == 4) {
      words_ = philox::bits(
          {static_cast<std::uint32_t>(count_), static_cast<std::uint32_t>(count_ >> 32), 0, 0},
          key_);
      ++count_;
      used_ = 0;
    }
    return words_[used_++];
  }
  double uniform() { return (bits() + 0.5) * 0x1p-32; }  // in (0, 1)
  // 0 to count - 1; `count` at least 1.
  std::int32_t below(std::int64_t count) {
    return static_cast<std::int32_t>((std::uint64_t{bits()} * static_cast<std::uint64_t>(count)) >>
                                     32);
  }
  double normal() {  // Box and Muller
    return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform());
  }
  template <class T>
  void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
    }
  }

 private:
  philox::Key key_;
  std::uint64_t count_ = 0;
  philox::Words words_{};
  std::size_t used_ = 4;
};

}  // namespace nunchi::lab
