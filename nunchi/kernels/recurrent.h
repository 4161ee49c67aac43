// Recurrent layers over ragged batches, with the equations of PyTorch and cuDNN.
//
//   lstm   i, f, g, o = a + b               gru   r, z = σ(a + b)
//          c' = σ(f) c + σ(i) tanh(g)             n = tanh(a + r b)
//          h' = σ(o) tanh(c')                     h' = (1 - z) n + z h
//
// where `a` = x W_ihᵀ + b_ih is one product over all rows, computed by the caller, and
// `b` = h W_hhᵀ + b_hh is one product per step. Step t processes only the sentences with more than
// t tokens (the active sentences). Sentences are ranked by length, longest first, so the active
// sentences are always the first ranks. Values per (step, rank) are stored in step order: all
// active ranks of step 0, then those of step 1, … (as in PyTorch's PackedSequence).
//
// A sentence's result is independent of the rest of the batch wherever rows of a product are
// (rows_are_independent() in kernels/product.h).
#pragma once

#include <cstdint>

#include "nunchi/kernels/product.h"
#include "nunchi/kernels/rows.h"
#include "nunchi/kernels/run.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

enum class CellKind : std::uint8_t { gru, lstm };

// Number of gates G of a cell. Its weights have G · width rows, in the order i, f, g, o of an lstm
// or r, z, n of a gru.
constexpr std::int64_t gates_of(CellKind cell) { return cell == CellKind::lstm ? 4 : 3; }

// Extra rows at the end of matrices in step order: kernels may round the rows of a step's product
// up, so that few distinct shapes occur.
inline constexpr std::int64_t kSpareRows = 64;

// Assigns rows of a batch to (step, rank). Owns nothing.
struct RecurrentPlan {
  std::int64_t sentences = 0;              // B
  std::int64_t steps = 0;                  // tokens of the longest sentence
  const std::int64_t* active = nullptr;    // [steps] active sentences of each step; host memory
  const std::int32_t* sentence = nullptr;  // [B] sentence of each rank; null: rank i is sentence i
  const std::int32_t* begin = nullptr;     // [B] first row of each rank; null: row i for rank i
  const std::int32_t* length = nullptr;    // [B] number of rows of each rank

  constexpr std::int64_t sentence_at(std::int64_t rank) const {
    return sentence != nullptr ? sentence[rank] : rank;
  }
  // The row that a rank reads in step `token`.
  constexpr std::int64_t row(std::int64_t rank, std::int64_t token, bool reverse) const {
    if (begin == nullptr) return rank;
    return begin[rank] + (reverse ? length[rank] - 1 - token : token);
  }
};

// One step of a plan.
struct RecurrentStep {
  std::int64_t active = 0;       // number of active sentences
  std::int64_t next_active = 0;  // number of active sentences of the next step; 0 in the last step
  std::int64_t first = 0;        // first row of this step, in step order
  std::int64_t previous_first = 0;  // first row of the previous step; 0 in the first step
  std::int64_t index = 0;           // of the step
};

// Arguments of the forward and the backward pass of one direction of a layer.
template <class T>
struct RecurrentInputs {
  CellKind cell = CellKind::gru;
  bool reverse = false;    // processes each sentence from its last token to its first
  std::int64_t width = 0;  // H
  RecurrentPlan plan;
  Rows rows;
  T* gates = nullptr;  // [T, G · H], rows `gates_stride` apart
  std::int64_t gates_stride = 0;
  // The product of a step with W_hh [G · H, H]: states · W_hhᵀ in the forward pass, gradients ·
  // W_hh in the backward pass. The kernel sets m, a, c and accumulate in each step.
  Product<T, Accumulator<T>> product;
  const T* initial_h = nullptr;               // [B, H] initial state; null: zeros
  const Accumulator<T>* initial_c = nullptr;  // [B, H] initial cell state of an lstm; null: zeros
  std::int64_t state_stride = 0;              // elements from one sentence's state to the next
  T* previous_h = nullptr;  // [capacity + kSpareRows, H] in step order: h before each step
  // [capacity + kSpareRows, H] in step order, saved for the backward pass: c' of an lstm, `b` of
  // gate n of a gru.
  Accumulator<T>* saved = nullptr;

  Work work() const {
    const double rows_width = static_cast<double>(rows.capacity) * static_cast<double>(width);
    return {.flops = 2.0 * static_cast<double>(gates_of(cell) * width) * rows_width};
  }
};

// The forward pass. Reads `a` from `gates` and overwrites it with the activated gates.
template <class T>
struct Recurrence {
  RecurrentInputs<T> in;
  const T* bias = nullptr;  // b_hh, [G · H]
  T* out = nullptr;         // [T, H] h'; tail rows become zero
  std::int64_t out_stride = 0;
  T* last_h = nullptr;               // [B, H] h after each sentence's last step; may be null
  Accumulator<T>* last_c = nullptr;  // [B, H] c after each sentence's last step; may be null

  const char* name() const { return "recurrence"; }
  Work work() const { return in.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Recurrence<T>& p);

// The backward pass. Reads the activated gates and overwrites them with the gradient of `a`.
template <class T>
struct RecurrenceBackward {
  RecurrentInputs<T> in;
  const T* d_out = nullptr;  // [T, H]; null: zeros
  std::int64_t d_out_stride = 0;
  const T* d_last_h = nullptr;               // [B, H]; null: zeros
  const Accumulator<T>* d_last_c = nullptr;  // [B, H]; null: zeros
  // [capacity + kSpareRows, G · H] gradient of `b`, in step order; rows from the count to the
  // capacity become zero.
  T* d_b = nullptr;
  T* d_initial_h = nullptr;               // [B, H]; null: not wanted
  Accumulator<T>* d_initial_c = nullptr;  // [B, H]; null: not wanted

  const char* name() const { return "recurrence_backward"; }
  Work work() const { return in.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const RecurrenceBackward<T>& p);

}  // namespace nunchi::kernels
