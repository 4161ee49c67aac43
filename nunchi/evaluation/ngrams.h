// Numbers the n-grams of a few short sequences so that equal n-grams have equal numbers. This is
// exact: an n-gram is identified by the number of its first n - 1 symbols and by its last symbol,
// never by a hash alone.
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
  // Removes all keys and reserves memory for `keys` keys.
  void restart(std::size_t keys);
  // May be called with at most as many different keys as restart() reserved.
  std::uint32_t number(std::uint64_t key);
  std::uint32_t size() const { return size_; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t number = 0;
    std::uint32_t round = 0;  // the restart after which the slot was used; 0: never
  };
  std::vector<Slot> slots_;  // open addressing, at most half full
  int shift_ = 0;            // 64 minus the bits of a slot index
  std::uint32_t round_ = 0;
  std::uint32_t size_ = 0;
};

// The numbers of the n-grams of sequences, for n = 1, 2, 3 and so on. Equal n-grams have equal
// numbers in all sequences. One object can be used for many lines and keeps its memory.
class Ngrams {
 public:
  // Starts with n = 1. `sequences` must not change until the next start.
  void start(std::span<const Sequence> sequences);
  // From n to n + 1.
  void extend();

  // The numbers of the n-grams of a sequence, in order; empty when it is shorter than n.
  std::span<const std::uint32_t> of(std::size_t sequence) const { return numbers_[sequence]; }
  // The number of different n-grams: all numbers are below it.
  std::uint32_t distinct() const { return numbering_.size(); }

  // How often each number appears in a sequence.
  void count(std::size_t sequence, std::vector<std::int32_t>& counts) const;

 private:
  std::span<const Sequence> sequences_;
  std::size_t order_ = 0;
  std::vector<std::vector<std::uint32_t>> numbers_;
  Numbering numbering_;
};

// Gives equal words equal symbols.
class WordSymbols {
 public:
  void restart() { symbols_.clear(); }
  // The bytes of the word must stay valid until the next restart().
  Symbol symbol(std::string_view word) {
    return symbols_.try_emplace(word, static_cast<Symbol>(symbols_.size())).first->second;
  }

 private:
  std::unordered_map<std::string_view, Symbol> symbols_;
};

// Σ min(a[i], b[i]): the number of n-grams that two sequences with these counts share.
std::int32_t shared_count(std::span<const std::int32_t> a, std::span<const std::int32_t> b);

}  // namespace nunchi::evaluation
