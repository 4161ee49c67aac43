// Recurrent layers over ragged batches, with the equations of PyTorch and cuDNN.
//
//   lstm   i, f, g, o = a + b               gru   r, z = σ(a + b)
//          c' = σ(f) c + σ(i) tanh(g)             n = tanh(a + r b)
//          h' = σ(o) tanh(c')                     h' = (1 - z) n + z h
//
// where a = x W_ihᵀ + b_ih is one product over all rows, computed before, and b = h W_hhᵀ + b_hh is
// one product per step. Step t works only on the sentences that have a token t. Sentences are
// ranked by length, longest first, so the active sentences of a step are always the first ranks.
// Values of (step, rank) are stored in step order: all ranks of step 0, then all of step 1, …
//
// A sentence's result depends only on its own rows where that holds for products
// (kernels/product.h).
#pragma once

#include <cstdint>

#include "nunchi/kernels/product.h"
#include "nunchi/kernels/rows.h"
#include "nunchi/kernels/run.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

enum class CellKind : std::uint8_t { gru, lstm };

// Gates of a cell: its weights have gates · width rows, in the order above (r, z, n).
constexpr std::int64_t gates_of(CellKind cell) { return cell == CellKind::lstm ? 4 : 3; }

// Rows that matrices in step order have beyond the batch's capacity: products may be padded with a
// few rows, so that their shapes repeat.
inline constexpr std::int64_t kSpareRows = 64;

struct RecurrentPlan {
  std::int64_t sentences = 0;            // B
  std::int64_t steps = 0;                // tokens of the longest sentence
  const std::int64_t* active = nullptr;  // [steps] sentences with a token at that step; on the host
  const std::int32_t* sentence = nullptr;  // [B] sentence of each rank; null: the rank itself
  const std::int32_t* begin = nullptr;     // [B] first row of each rank; null: row = rank
  const std::int32_t* length = nullptr;    // [B] rows of each rank

  constexpr std::int64_t sentence_at(std::int64_t rank) const {
    return sentence != nullptr ? sentence[rank] : rank;
  }
  // The row that a rank reads in a step.
  constexpr std::int64_t row(std::int64_t rank, std::int64_t token, bool reverse) const {
    if (begin == nullptr) return rank;
    return begin[rank] + (reverse ? length[rank] - 1 - token : token);
  }
};

// One step of a plan.
struct RecurrentStep {
  std::int64_t active = 0;  // sentences that have a token
  std::int64_t next = 0;    // of these, sentences that also have a token in the next step
  std::int64_t first = 0;   // the step's first row in step order
  std::int64_t before = 0;  // the first row of the previous step
  std::int64_t token = 0;
};

// Arguments shared by forward and backward: one direction of a layer.
template <class T>
struct RecurrentInputs {
  CellKind cell = CellKind::gru;
  bool reverse = false;    // from each sentence's last token to its first
  std::int64_t width = 0;  // H
  RecurrentPlan plan;
  Rows rows;
  T* gates = nullptr;  // [T, G · H], rows `gates_stride` apart
  std::int64_t gates_stride = 0;
  // A step's product with W_hh [G · H, H]: states · W_hhᵀ forward, gradients · W_hh backward. Each
  // step sets m, a, c and accumulate.
  Product<T, Accumulator<T>> product;
  const T* first_h = nullptr;               // [B, H]; null: zeros
  const Accumulator<T>* first_c = nullptr;  // [B, H], of lstm; null: zeros
  std::int64_t state_stride = 0;            // elements from one sentence's state to the next
  T* previous = nullptr;  // [capacity + kSpareRows, H] in step order: the state before each token
  // [capacity + kSpareRows, H] in step order; lstm: c', gru: b of gate n.
  Accumulator<T>* kept = nullptr;

  Work work() const {
    const double rows_width = static_cast<double>(rows.capacity) * static_cast<double>(width);
    return {.flops = 2.0 * static_cast<double>(gates_of(cell) * width) * rows_width};
  }
};

// Reads a from `gates` and overwrites it with the gates after their non-linearity.
template <class T>
struct Recurrence {
  RecurrentInputs<T> in;
  const T* bias = nullptr;  // b_hh, [G · H]
  T* out = nullptr;         // [T, H] h'; tail rows become zero
  std::int64_t out_stride = 0;
  T* last_h = nullptr;               // [B, H] after each sentence's last step; may be null
  Accumulator<T>* last_c = nullptr;  // [B, H]; may be null

  const char* name() const { return "recurrence"; }
  Work work() const { return in.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Recurrence<T>& p);

// Reads the gates and overwrites them with the gradient of a.
template <class T>
struct RecurrenceBackward {
  RecurrentInputs<T> in;
  const T* d_out = nullptr;  // [T, H]; null: zeros
  std::int64_t d_out_stride = 0;
  const T* d_last_h = nullptr;               // [B, H]; null: zeros
  const Accumulator<T>* d_last_c = nullptr;  // [B, H]; null: zeros
  T* d_b = nullptr;  // [capacity + kSpareRows, G · H] in step order; zero from count to capacity
  T* d_first_h = nullptr;               // [B, H]; null: not wanted
  Accumulator<T>* d_first_c = nullptr;  // [B, H]; null: not wanted

  const char* name() const { return "recurrence_backward"; }
  Work work() const { return in.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const RecurrenceBackward<T>& p);

}  // namespace nunchi::kernels
