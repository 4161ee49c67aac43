// Which n-grams of a few short sequences are the same. Exact: an n-gram is found by its first n - 1
// symbols, which have a number already, and its last, never by a hash alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace nunchi::evaluation {

using Symbol = std::uint32_t;
using Sequence = std::vector<Symbol>;

// Gives equal keys equal numbers: 0, 1, 2, … in the order in which they first appear.
class Numbering {
 public:
  // Forgets all keys and makes room for `keys` of them.
  void restart(std::size_t keys);
  // At most as many different keys as restart() was told.
  std::uint32_t number(std::uint64_t key);
  std::uint32_t size() const { return size_; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t number = 0;
    std::uint32_t round = 0;  // the restart after which the slot was taken; 0 for never
  };
  std::vector<Slot> slots_;  // open addressing, at most half full
  int shift_ = 0;            // 64 less the bits of a place
  std::uint32_t round_ = 0;
  std::uint32_t size_ = 0;
};

// The numbers of the n-grams of sequences, for n = 1, 2, 3 and so on. Equal n-grams have equal
// numbers, whichever sequence they stand in. Kept from line to line for its memory.
class Ngrams {
 public:
  // Starts with n = 1. `sequences` must stay as they are until the next start.
  void start(std::span<const Sequence> sequences);
  // From n to n + 1.
  void extend();

  // One number for each n-gram of a sequence, in order; none when it is shorter than n.
  std::span<const std::uint32_t> of(std::size_t sequence) const { return numbers_[sequence]; }
  // Numbers are below this.
  std::uint32_t distinct() const { return numbering_.size(); }

  // How often each number appears in a sequence.
  void count(std::size_t sequence, std::vector<std::int32_t>& counts) const;

 private:
  std::span<const Sequence> sequences_;
  std::size_t order_ = 0;
  std::vector<std::vector<std::uint32_t>> numbers_;
  Numbering numbering_;
};

// Words as symbols: equal words are equal symbols.
class WordSymbols {
 public:
  void restart() { symbols_.clear(); }
  // The word's bytes must stay where they are until the restart.
  Symbol symbol(std::string_view word) {
    return symbols_.try_emplace(word, static_cast<Symbol>(symbols_.size())).first->second;
  }

 private:
  std::unordered_map<std::string_view, Symbol> symbols_;
};

// Σ min(a[i], b[i]): how many n-grams two counts share.
std::int32_t shared(std::span<const std::int32_t> a, std::span<const std::int32_t> b);

}  // namespace nunchi::evaluation
