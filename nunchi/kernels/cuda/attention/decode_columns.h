// A lane's state in decode attention: some columns of a row, and its part of an online softmax.
#pragma once

#include <limits>

#include "nunchi/kernels/cuda/common/device.h"

namespace nunchi::kernels {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// A lane's columns of a row, eight of each 256. Aligned: complete and aligned, in their storage
// type.
template <class N, bool Aligned, int Chunks>
struct Columns {
  Packed8<N> eight[Chunks] = {};

  __device__ void load(const N* row, int column, int width) {
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
      if (column + c * 8 * kWarp < width) load8(row + column + c * 8 * kWarp, eight[c]);
    }
  }
  __device__ void get(float (&x)[Chunks][8]) const {
#pragma unroll
    for (int c = 0; c < Chunks; ++c) unpack(eight[c], x[c]);
  }
  __device__ void store(N* row, int column, int width) const {
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
      if (column + c * 8 * kWarp < width) store8(row + column + c * 8 * kWarp, eight[c]);
    }
  }
};
template <class N, int Chunks>
struct Columns<N, false, Chunks> {
  N values[Chunks][8] = {};

  __device__ void load(const N* row, int column, int width) {
    for_each(column, width, [&](int c, int i, int index) { values[c][i] = row[index]; });
  }
  __device__ void get(float (&x)[Chunks][8]) const {
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
#pragma unroll
      for (int i = 0; i < 8; ++i) x[c][i] = to_float(values[c][i]);
    }
  }
  __device__ void store(N* row, int column, int width) const {
    for_each(column, width, [&](int c, int i, int index) { row[index] = values[c][i]; });
  }

 private:
  template <class F>
  __device__ static void for_each(int column, int width, F f) {
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int index = column + c * 8 * kWarp + i;
        if (index < width) f(c, i, index);
      }
    }
  }
};

// An online softmax: the sum of the weights and the weighted sum of the values, relative to the
// highest score so far.
template <int Chunks>
struct Softmax {
  float running_max = kLowest, total = 0;
  float sums[Chunks][8] = {};

  // Calls f(sum, chunk, i) for each of the sums.
  template <class F>
  __device__ void for_sums(F f) {
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
#pragma unroll
      for (int i = 0; i < 8; ++i) f(sums[c][i], c, i);
    }
  }
  __device__ void rescale_to(float new_max) {
    const float rescale = running_max == kLowest ? 0.0f : expf(running_max - new_max);
    running_max = new_max;
    total *= rescale;
    for_sums([rescale](float& sum, int, int) { sum *= rescale; });
  }
  __device__ void add(const Softmax& other) {
    total += other.total;
    for_sums([&other](float& sum, int c, int i) { sum += other.sums[c][i]; });
  }
};

}  // namespace nunchi::kernels
