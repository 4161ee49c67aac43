#include "nunchi/evaluation/ngrams.h"

#include <algorithm>
#include <bit>

namespace nunchi::evaluation {

void Numbering::restart(std::size_t keys) {
  const std::size_t capacity = std::bit_ceil(std::max<std::size_t>(2 * keys, 16));
  if (capacity > slots_.size() || ++round_ == 0) {
    slots_.assign(std::max(capacity, slots_.size()), Slot{});
    round_ = 1;
  }
  // A short line after a long one uses only the first slots, which stay in the CPU cache.
  shift_ = 64 - std::countr_zero(capacity);
  size_ = 0;
}

std::uint32_t Numbering::number(std::uint64_t key) {
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15ull;
  const std::size_t mask = (std::size_t{1} << (64 - shift_)) - 1;
  // The xor-shift folds the high bits of the key into lower ones, because the high bits alone
  // hardly change the high bits of the product.
  std::size_t slot = ((key ^ key >> 29) * kMultiplier) >> shift_;
  while (slots_[slot].round == round_) {
    if (slots_[slot].key == key) return slots_[slot].number;
    slot = (slot + 1) & mask;
  }
  slots_[slot] = {key, size_, round_};
  return size_++;
}

void Ngrams::start(std::span<const Sequence> sequences) {
  sequences_ = sequences;
  order_ = 1;
  if (numbers_.size() < sequences.size()) numbers_.resize(sequences.size());
  std::size_t symbols = 0;
  for (const Sequence& sequence : sequences) symbols += sequence.size();
  numbering_.restart(symbols);
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    numbers_[s].resize(sequences[s].size());
    std::ranges::transform(sequences[s], numbers_[s].begin(),
                           [&](Symbol symbol) { return numbering_.number(symbol); });
  }
}

void Ngrams::extend() {
  std::size_t ngrams = 0;
  for (std::size_t s = 0; s < sequences_.size(); ++s) ngrams += numbers_[s].size();
  numbering_.restart(ngrams);
  for (std::size_t s = 0; s < sequences_.size(); ++s) {
    if (numbers_[s].empty()) continue;
    numbers_[s].pop_back();
    for (std::size_t i = 0; i < numbers_[s].size(); ++i) {
      const std::uint64_t head = numbers_[s][i];
      numbers_[s][i] = numbering_.number(head << 32 | sequences_[s][i + order_]);
    }
  }
  ++order_;
}

void Ngrams::count(std::size_t sequence, std::vector<std::int32_t>& counts) const {
  counts.assign(distinct(), 0);
  for (const std::uint32_t number : of(sequence)) ++counts[number];
}

std::int32_t shared_count(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::min(a[i], b[i]);
  return sum;
}

}  // namespace nunchi::evaluation
