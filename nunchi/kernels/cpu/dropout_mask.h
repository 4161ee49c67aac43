// Dropout masks: a vector computes Philox for many counters at once.
#pragma once

#include <omp.h>

#include <utility>

#include "nunchi/base/random.h"
#include "nunchi/device/context.h"
#include "nunchi/kernels/cpu/simd.h"
#include "nunchi/kernels/dropout.h"

namespace nunchi::kernels {
namespace {

using Words = Vec<std::uint32_t>;
constexpr int kWordLanes = kLanes<std::uint32_t>;
// Number of factors that one vector generates; buffers of factors are padded to a multiple of it.
constexpr std::int64_t kFactorBlock = 8 * kWordLanes;

constexpr std::int64_t factor_capacity(std::int64_t width) {
  return (width + kFactorBlock - 1) / kFactorBlock * kFactorBlock;
}

// Multiplies 32-bit lanes and splits the 64-bit products into upper and lower halves.
[[gnu::always_inline]] inline void multiply(Words a, std::uint32_t by, Words& high, Words& low) {
#if defined(__x86_64__)
#if defined(__AVX512F__)
  using Native = __m512i;
  const Native m = _mm512_set1_epi64(by);
  const Native even = _mm512_mul_epu32((Native)a, m);
  const Native odd = _mm512_mul_epu32(_mm512_srli_epi64((Native)a, 32), m);
#elif defined(__AVX2__)
  using Native = __m256i;
  const Native m = _mm256_set1_epi64x(by);
  const Native even = _mm256_mul_epu32((Native)a, m);
  const Native odd = _mm256_mul_epu32(_mm256_srli_epi64((Native)a, 32), m);
#else
  using Native = __m128i;
  const Native m = _mm_set1_epi64x(by);
  const Native even = _mm_mul_epu32((Native)a, m);
  const Native odd = _mm_mul_epu32(_mm_srli_epi64((Native)a, 32), m);
#endif
  using Longs = Vec<std::uint64_t>;
  constexpr std::uint64_t kLow = 0xFFFFFFFFull;
  high = (Words)(((Longs)even >> 32) | ((Longs)odd & ~kLow));
  low = (Words)(((Longs)even & kLow) | ((Longs)odd << 32));
#else
  for (int i = 0; i < kWordLanes; ++i) {
    const std::uint64_t product = std::uint64_t{a[i]} * by;
    high[i] = static_cast<std::uint32_t>(product >> 32);
    low[i] = static_cast<std::uint32_t>(product);
  }
#endif
}

// Interleaves pairs of 32 or of 64 bits of a and b within 4-lane groups, as unpack instructions do.
template <bool Wide, bool Upper, int... I>
[[gnu::always_inline]] inline Words interleave(Words a, Words b, std::integer_sequence<int, I...>) {
  constexpr auto from = [](int lane) {
    const int group = lane / 4 * 4, index_in_group = lane % 4;
    const int source = Wide ? index_in_group / 2 : index_in_group % 2;
    const int index =
        Wide ? index_in_group % 2 + (Upper ? 2 : 0) : index_in_group / 2 + (Upper ? 2 : 0);
    return source * kWordLanes + group + index;
  };
  return __builtin_shufflevector(a, b, from(I)...);
}

template <bool Wide, bool Upper>
[[gnu::always_inline]] inline Words interleave(Words a, Words b) {
  return interleave<Wide, Upper>(a, b, std::make_integer_sequence<int, kWordLanes>{});
}

template <int Lanes>
struct HalfWords {
  using type __attribute__((vector_size(2 * Lanes))) = std::uint16_t;
};

// Generates dropout factors: 0 for a dropped element, 1 / (1 - p) for a kept one.
template <class T>
class DropoutGenerator {
 public:
  explicit DropoutGenerator(const Dropout& dropout)
      : key_(dropout.active() ? philox::key_of(*dropout.key) : philox::Key{}),
        operation_id_(dropout.operation_id),
        threshold_(dropout.threshold()),
        scale_(static_cast<T>(dropout.scale())) {
    // The transposition in draw() moves the words of lane 4 g + k to group g of parts[k].
    for (int lane = 0; lane < kWordLanes; ++lane) {
      order_[lane] = static_cast<std::uint32_t>(lane % 4 * (kWordLanes / 4) + lane / 4);
    }
  }

  // Writes the factors of `width` columns from `first_column`, which must be a multiple of 8. The
  // buffer must hold factor_capacity(width) elements.
  void fill(std::uint32_t sentence, std::uint32_t row, std::uint32_t first_column,
            std::int64_t width, T* dropout_factors) const {
    for (std::int64_t begin = 0; begin < width; begin += kFactorBlock) {
      const std::uint32_t first = (first_column + static_cast<std::uint32_t>(begin)) / 8;
      draw(order_ + first, row - Words{}, sentence, dropout_factors + begin);
    }
  }

  // Writes the factors of a tile, row after row: `rows` rows from `first_row`, with 8 · 2^`shift`
  // columns each. Short rows are generated together. The buffer must hold
  // factor_capacity(rows · columns) elements.
  void fill_tile(std::uint32_t sentence, std::uint32_t first_row, std::int64_t rows,
                 std::uint32_t first_column, int shift, T* dropout_factors) const {
    const std::int64_t elements = rows << (shift + 3);
    for (std::int64_t begin = 0; begin < elements; begin += kFactorBlock) {
      const Words group = order_ + static_cast<std::uint32_t>(begin / 8);
      const std::uint32_t last = (1u << shift) - 1;
      draw((group & last) + first_column / 8, (group >> shift) + first_row, sentence,
           dropout_factors + begin);
    }
  }

 private:
  [[gnu::always_inline]] void draw(Words c0, Words c1, std::uint32_t sentence,
                                   T* dropout_factors) const {
    Words c2 = sentence - Words{}, c3 = operation_id_ - Words{};
    std::uint32_t key0 = key_[0], key1 = key_[1];
    for (int round = 0; round < philox::kRounds; ++round) {
      Words high0, low0, high1, low1;
      multiply(c0, philox::kMultiplier0, high0, low0);
      multiply(c2, philox::kMultiplier1, high1, low1);
      c0 = high1 ^ c1 ^ key0;
      c1 = low1;
      c2 = high0 ^ c3 ^ key1;
      c3 = low0;
      key0 += philox::kWeyl0;
      key1 += philox::kWeyl1;
    }
    const Words low01 = interleave<false, false>(c0, c1), high01 = interleave<false, true>(c0, c1);
    const Words low23 = interleave<false, false>(c2, c3), high23 = interleave<false, true>(c2, c3);
    const Words parts[4] = {
        interleave<true, false>(low01, low23), interleave<true, true>(low01, low23),
        interleave<true, false>(high01, high23), interleave<true, true>(high01, high23)};
    alignas(64) std::uint16_t draws[kFactorBlock];
    __builtin_memcpy(draws, parts, sizeof parts);
    const auto threshold = static_cast<Integer<T>>(threshold_);
    for (std::int64_t i = 0; i < kFactorBlock; i += kLanes<T>) {
      typename HalfWords<kLanes<T>>::type halves;
      __builtin_memcpy(&halves, draws + i, sizeof halves);
      const auto numbers = __builtin_convertvector(halves, Vec<Integer<T>>);
      store<Vec<T>>(dropout_factors + i, numbers < threshold ? Vec<T>{} : splat<Vec<T>>(scale_));
    }
  }

  Words order_;
  philox::Key key_;
  std::uint32_t operation_id_;
  std::uint32_t threshold_;
  T scale_;
};

// A buffer for one row of dropout factors per thread. The memory is allocated before the threads
// start, because an exception inside a parallel region could not be caught.
template <class T>
class DropoutScratch {
 public:
  DropoutScratch(CpuContext& ctx, std::int64_t width)
      : capacity_(factor_capacity(width)),
        memory_(ctx.arena(), static_cast<std::size_t>(capacity_ * ctx.threads()) * sizeof(T)) {}
  // The calling thread's buffer.
  T* thread_buffer() const { return memory_.template as<T>() + omp_get_thread_num() * capacity_; }

 private:
  std::int64_t capacity_;
  ScratchMemory memory_;
};

}  // namespace
}  // namespace nunchi::kernels
