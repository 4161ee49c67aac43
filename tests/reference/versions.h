// Helpers of the kernel tests: run every compiled version of a kernel, build ragged batches,
// compare results.
//
// Kernels get vectors of exactly the promised sizes, so a sanitizer detects every access outside
// them.
#pragma once

#include <string>
#include <vector>

#include "nunchi/kernels/rows.h"
#include "nunchi/kernels/run.h"
#include "tests/support.h"

namespace nunchi::testing {

// Sizes below, at and above the sizes of vectors and tiles.
inline const std::vector<std::int32_t> kLengths = {33, 1, 127, 32, 31};
inline const std::vector<std::int64_t> kWidths = {1, 3, 20, 37, 64, 130};

template <class T>
inline constexpr double kTolerance = sizeof(T) == 4 ? 1e-5 : 1e-13;
template <class T>
inline constexpr const char* kTypeName = sizeof(T) == 4 ? "f32" : "f64";

// Calls f.operator()<T>(context) for f32 in every instruction set and for f64, which has one. The
// contexts split even small work.
template <class F>
void for_every_isa_and_type(F&& f) {
  for (const Isa isa : all_isas()) {
    SCOPED_TRACE(name_of(isa));
    CpuContext context({.threads = 2, .isa = isa, .split_small_work = true});
    {
      SCOPED_TRACE("f32");
      f.template operator()<float>(context);
    }
    if (isa == kernels::kF64Isa) {
      SCOPED_TRACE("f64");
      f.template operator()<double>(context);
    }
  }
}

// f.operator()<T>(context) returns numbers whose bits must be the same for 1, 2 and 4 threads.
template <class F>
void expect_same_bits_for_any_threads(F&& f) {
  for (const Isa isa : all_isas()) {
    CpuContext one({.threads = 1, .isa = isa});
    const auto f32 = f.template operator()<float>(one);
    const auto f64 = f.template operator()<double>(one);
    for (const int threads : {2, 4}) {
      CpuContext more({.threads = threads, .isa = isa, .split_small_work = true});
      EXPECT_TRUE(same_bits(f32, f.template operator()<float>(more)))
          << name_of(isa) << " f32, " << threads << " threads";
      EXPECT_TRUE(same_bits(f64, f.template operator()<double>(more)))
          << name_of(isa) << " f64, " << threads << " threads";
    }
  }
}

// A ragged batch with `spare` rows past the count. `indices` are the indices of the sentences in
// the global batch; empty: 0, 1, 2, …
struct Batch {
  explicit Batch(const std::vector<std::int32_t>& lengths, std::int64_t spare = 0,
                 const std::vector<std::int32_t>& indices = {}) {
    for (std::size_t b = 0; b < lengths.size(); ++b) {
      sentence_index.push_back(indices.empty() ? static_cast<std::int32_t>(b) : indices[b]);
      offsets.push_back(offsets.back() + lengths[b]);
      longest = std::max<std::int64_t>(longest, lengths[b]);
      for (std::int32_t i = 0; i < lengths[b]; ++i) {
        sentence.push_back(sentence_index.back());
        position.push_back(i);
      }
    }
    count = offsets.back();
    capacity = count + spare;
    sentence.resize(static_cast<std::size_t>(capacity));
    position.resize(static_cast<std::size_t>(capacity));
  }

  std::int64_t sentence_count() const { return std::ssize(sentence_index); }
  kernels::Rows rows() const {
    return {.capacity = capacity,
            .count = &count,
            .sentence = sentence.data(),
            .position = position.data()};
  }

  std::vector<std::int32_t> sentence_index, offsets{0}, sentence, position;
  std::int32_t count = 0;
  std::int64_t capacity = 0, longest = 0;
};

// A buffer for results: elements that the kernel does not write stay NaN.
template <class T>
std::vector<T> unwritten(std::int64_t count) {
  return std::vector<T>(static_cast<std::size_t>(count), static_cast<T>(NAN));
}

// Elements [begin, begin + count).
template <class T>
std::vector<T> subrange(const std::vector<T>& all, std::int64_t begin, std::int64_t count) {
  return {all.begin() + begin, all.begin() + begin + count};
}

// Compares the first elements of `actual` with `expected`; differences are relative to
// 1 + |expected|. `actual` may be longer.
template <class T>
void expect_close(const char* what, const std::vector<T>& actual,
                  const std::vector<double>& expected, double tolerance = kTolerance<T>) {
  ASSERT_GE(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(actual[i]) - expected[i]);
    ASSERT_LE(difference, tolerance * (1 + std::fabs(expected[i])))
        << what << '[' << i << "] is " << actual[i] << ", not " << expected[i];
  }
}

template <class T>
void expect_finite_from(const char* what, const std::vector<T>& values, std::int64_t begin) {
  for (std::size_t i = static_cast<std::size_t>(begin); i < values.size(); ++i) {
    ASSERT_TRUE(std::isfinite(values[i])) << what << '[' << i << "] is " << values[i];
  }
}

template <class T>
void expect_zero_from(const char* what, const std::vector<T>& values, std::int64_t begin) {
  for (std::size_t i = static_cast<std::size_t>(begin); i < values.size(); ++i) {
    ASSERT_EQ(values[i], T(0)) << what << '[' << i << ']';
  }
}

// One row of a matrix.
template <class T>
std::vector<double> row_of(const std::vector<T>& matrix, std::int64_t row, std::int64_t width) {
  const auto values = subrange(matrix, row * width, width);
  return {values.begin(), values.end()};
}

}  // namespace nunchi::testing
