#include <algorithm>
#include <cmath>
#include <limits>

#include "nunchi/kernels/cpu/isa_version.h"
#include "nunchi/kernels/cpu/log_add.h"
#include "nunchi/kernels/cpu/log_sum.h"
#include "nunchi/kernels/cpu/parallel.h"
#include "nunchi/kernels/cpu/simd.h"
#include "nunchi/kernels/search.h"

namespace nunchi::kernels {
namespace {

// The log-sum-exp of a row, including banned tokens. `max_logit` is the highest logit of the row.
template <class Args, class T>
double log_sum(const Args& p, std::int64_t row, T max_logit) {
  const T* x = p.logits + row * p.vocabulary;
  const double allowed = log_sum_of_row(p.vocabulary, x, max_logit);
  return p.banned != nullptr ? log_add(allowed, p.banned[row]) : allowed;
}

// The `count` highest values seen so far, highest first; among equals, the earliest.
template <class T>
class TopValues {
 public:
  TopValues(std::int64_t count, T* values, std::int32_t* ids)
      : count_(count), values_(values), ids_(ids) {}

  T threshold() const { return size_ < count_ ? kLowest : values_[count_ - 1]; }

  void offer(T value, std::int64_t id) {
    if (size_ == count_ && !(value > values_[count_ - 1])) return;
    std::int64_t slot = std::min(size_, count_ - 1);
    for (; slot > 0 && value > values_[slot - 1]; --slot) {
      values_[slot] = values_[slot - 1];
      ids_[slot] = ids_[slot - 1];
    }
    values_[slot] = value;
    ids_[slot] = static_cast<std::int32_t>(id);
    size_ = std::min(size_ + 1, count_);
  }

 private:
  static constexpr T kLowest = -std::numeric_limits<T>::infinity();
  std::int64_t count_, size_ = 0;
  T* values_;
  std::int32_t* ids_;
};

template <class T>
void top_of_row(const TopTokens<T>& p, std::int64_t row) {
  const T* x = p.logits + row * p.vocabulary;
  T* values = p.log_probs + row * p.count;
  TopValues<T> best(p.count, values, p.ids + row * p.count);
  // Nearly all blocks are skipped, because their highest value does not exceed the threshold.
  constexpr std::int64_t kBlock = 64;
  for (std::int64_t begin = 0; begin < p.vocabulary; begin += kBlock) {
    const std::int64_t size = std::min(kBlock, p.vocabulary - begin);
    if (begin >= p.count && !(max_of_row(size, x + begin) > best.threshold())) continue;
    for (std::int64_t i = 0; i < size; ++i) best.offer(x[begin + i], begin + i);
  }
  const double sum = log_sum(p, row, values[0]);
  for (std::int64_t i = 0; i < p.count; ++i) {
    values[i] = static_cast<T>(static_cast<double>(values[i]) - sum);
  }
}

// Samples a token for each row that it is called for.
template <class T>
class Sampler {
 public:
  Sampler(const SampleTokens<T>& p, double* weights, std::int32_t* order)
      : p_(p), weights_(weights), order_(order) {}

  void draw(std::int64_t row) {
    unit_ = p_.options[p_.hypotheses.unit[row]];
    if (unit_.sample == 0) return;
    const T* x = p_.logits + row * p_.vocabulary;
    const T max_logit = max_of_row(p_.vocabulary, x);
    const std::int32_t id = pick(x, max_logit, uniform(row));
    p_.ids[row] = id;
    p_.log_probs[row] = static_cast<T>(static_cast<double>(x[id]) - log_sum(p_, row, max_logit));
  }

 private:
  double uniform(std::int64_t row) const {
    const auto stream = static_cast<std::uint64_t>(unit_.stream);
    const std::int32_t generated = p_.hypotheses.length[row] - unit_.prefix_length;
    const philox::Words words =
        philox::bits({static_cast<std::uint32_t>(generated), static_cast<std::uint32_t>(stream),
                      static_cast<std::uint32_t>(stream >> 32), kSamplingCounter},
                     philox::key_of({.seed = unit_.seed}));
    const std::uint64_t bits = std::uint64_t{words[0]} << 32 | words[1];
    return static_cast<double>(bits >> 11) * 0x1p-53;
  }

  std::int32_t pick(const T* x, T max_logit, double uniform) {
    for (std::int64_t i = 0; i < p_.vocabulary; ++i) {
      order_[i] = static_cast<std::int32_t>(i);
      const double weight = std::exp((static_cast<double>(x[i]) - static_cast<double>(max_logit)) /
                                     unit_.temperature);
      // A NaN cannot be sorted. It still makes the log-probability NaN.
      weights_[i] = weight >= 0 ? weight : 0;
    }
    const std::int64_t kept = apply_top_p(apply_top_k());
    double remaining = uniform * mass(kept);
    for (std::int64_t i = 0; i < kept; ++i) {
      remaining -= weights_[order_[i]];
      if (remaining < 0 && weights_[order_[i]] > 0) return order_[i];
    }
    // Rounding may leave a rest: then take the last token with a weight above 0.
    for (std::int64_t i = kept - 1; i > 0; --i) {
      if (weights_[order_[i]] > 0) return order_[i];
    }
    return order_[0];
  }

  // Moves the `count` most likely of the first `size` tokens to the front, in order.
  void sort_most_likely_first(std::int64_t count, std::int64_t size) {
    const auto more_likely = [this](std::int32_t a, std::int32_t b) {
      return weights_[a] != weights_[b] ? weights_[a] > weights_[b] : a < b;
    };
    if (count < size) std::nth_element(order_, order_ + count, order_ + size, more_likely);
    std::sort(order_, order_ + count, more_likely);
  }

  double mass(std::int64_t count) const {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += weights_[order_[i]];
    return sum;
  }

  // apply_top_k() and apply_top_p() return how many tokens at the front of order_ remain.
  std::int64_t apply_top_k() {
    if (unit_.top_k == 0 || unit_.top_k >= p_.vocabulary) return p_.vocabulary;
    sort_most_likely_first(unit_.top_k, p_.vocabulary);
    return unit_.top_k;
  }

  // A few tokens usually hold enough probability: sorting a few first is far faster than sorting
  // the whole vocabulary.
  std::int64_t apply_top_p(std::int64_t size) {
    if (unit_.top_p >= 1) return size;
    const double target_mass = unit_.top_p * mass(size);
    constexpr std::int64_t kFirst = 64, kGrowth = 8;
    for (std::int64_t sorted = std::min(kFirst, size);; sorted = std::min(sorted * kGrowth, size)) {
      sort_most_likely_first(sorted, size);
      double sum = 0;
      for (std::int64_t i = 0; i < sorted; ++i) {
        sum += weights_[order_[i]];
        if (sum >= target_mass) return i + 1;
      }
      if (sorted == size) return size;
    }
  }

  // Separates these random numbers from all others: the last word of the Philox counter.
  static constexpr std::uint32_t kSamplingCounter = 0x5A3B1E00u;
  const SampleTokens<T>& p_;
  UnitOptions unit_;     // of the current row
  double* weights_;      // [V] exp((logit - highest) / temperature)
  std::int32_t* order_;  // [V] token ids, partly sorted
};

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const TopTokens<T>& p) {
  const std::int64_t grain = row_grain(p.vocabulary);
  parallel_ranges(ctx, p.rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) top_of_row(p, r);
  });
}
template void compute<Cpu<kIsa>>(CpuContext&, const TopTokens<float>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const SampleTokens<T>& p) {
  const auto threads = static_cast<std::size_t>(ctx.threads());
  const auto size = static_cast<std::size_t>(p.vocabulary);
  const ScratchMemory weights(ctx.arena(), threads * size * sizeof(double));
  const ScratchMemory order(ctx.arena(), threads * size * sizeof(std::int32_t));
  parallel_ranges(ctx, p.counts.rows(p.rows), 1, [&](std::int64_t begin, std::int64_t end) {
    const auto thread = static_cast<std::size_t>(omp_get_thread_num());
    Sampler<T> sampler(p, weights.as<double>() + thread * size,
                       order.as<std::int32_t>() + thread * size);
    for (std::int64_t r = begin; r < end; ++r) sampler.draw(r);
  });
}
template void compute<Cpu<kIsa>>(CpuContext&, const SampleTokens<float>&);

#if NUNCHI_F64_VERSION
template void compute<Cpu<kIsa>>(CpuContext&, const TopTokens<double>&);
template void compute<Cpu<kIsa>>(CpuContext&, const SampleTokens<double>&);
#endif

}  // namespace nunchi::kernels
