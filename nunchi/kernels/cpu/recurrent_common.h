// Functions shared by the forward and backward pass of a recurrent layer.
#pragma once

#include <algorithm>

#include "nunchi/kernels/cpu/parallel.h"
#include "nunchi/kernels/cpu/rows.h"
#include "nunchi/kernels/cpu/sigmoid.h"
#include "nunchi/kernels/product.h"
#include "nunchi/kernels/recurrent_walk.h"

namespace nunchi::kernels {
namespace {

// Rounds the rows of a product up, so that few distinct shapes occur: the library plans each once.
inline std::int64_t padded_rows(std::int64_t rows) {
  if (rows <= 16) return rows;
  const std::int64_t multiple = rows <= 64 ? 8 : 16;
  return (rows + multiple - 1) / multiple * multiple;
}

// Calls compute() instead of run(), because a profile counts the products as part of the layer.
template <class T>
void multiply(CpuContext& ctx, const Product<T>& product) {
  compute<TargetOf<Product<T>>>(ctx, product);
}

// Finds the rows and states of the sentence with a given rank.
template <class T>
struct RankView {
  const RecurrentInputs<T>& in;

  std::int64_t row(std::int64_t rank, std::int64_t token) const {
    return in.plan.row(rank, token, in.reverse);
  }
  template <class U>
  U* state(U* states, std::int64_t rank) const {
    return states != nullptr ? states + in.plan.sentence_at(rank) * in.state_stride : nullptr;
  }
  T* gates(std::int64_t row) const { return in.gates + row * in.gates_stride; }
};

template <class T>
void copy_or_clear(const T* from, T* to, std::int64_t width) {
  if (to == nullptr) return;
  if (from == nullptr) {
    std::fill_n(to, width, T(0));
  } else {
    std::copy_n(from, width, to);
  }
}

template <class V>
[[gnu::always_inline]] inline V load_or_zero(const Element<V>* from, std::int64_t i) {
  return from != nullptr ? load<V>(from + i) : V{};
}

template <class T>
void clear_rows(const Rows& rows, std::int64_t width, std::int64_t stride, T* out) {
  for (std::int64_t r = count_of(rows); r < rows.capacity; ++r) {
    std::fill_n(out + r * stride, width, T(0));
  }
}

}  // namespace
}  // namespace nunchi::kernels
