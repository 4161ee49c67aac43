// Recurrent layers over ragged batches, with the equations of PyTorch and cuDNN.
//
//   lstm   i, f, g, o = a + b               gru   r, z = σ(a + b)
//          c' = σ(f) c + σ(i) tanh(g)             n = tanh(a + r b)
//          h' = σ(o) tanh(c')                     h' = (1 - z) n + z h
//
// where a = x W_ihᵀ + b_ih is one product of all rows, made before, and b = h W_hhᵀ + b_hh one
// product for each step. Step t works on the sentences that have a token t and on no others:
// sentences stand in places, the longest first, so that those that go on are always the first ones.
// What belongs to (step, place) stands in step order: all places of step 0, then all of step 1, …
//
// A sentence's result depends on its own rows alone where a product's rows do (kernels/product.h).
#pragma once

#include <cstdint>

#include "nunchi/kernels/rows.h"
#include "nunchi/kernels/run.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

enum class CellKind : std::uint8_t { gru, lstm };

// Gates of a cell: rows of its weights are so many times its width, in the order above (r, z, n).
constexpr std::int64_t gates_of(CellKind cell) { return cell == CellKind::lstm ? 4 : 3; }

// Rows that matrices in step order have beyond the batch's capacity: products may take a few rows
// more than there are, so that their shapes repeat.
inline constexpr std::int64_t kSpareRows = 64;

struct RecurrentPlan {
  std::int64_t sentences = 0;              // B
  std::int64_t steps = 0;                  // tokens of the longest
  const std::int64_t* active = nullptr;    // [steps] sentences with so many tokens; on the host
  const std::int32_t* sentence = nullptr;  // [B] which stands at a place; null: of that number
  const std::int32_t* begin = nullptr;     // [B] its first row; null: it has the place's only
  const std::int32_t* length = nullptr;    // [B] its rows

  constexpr std::int64_t sentence_at(std::int64_t place) const {
    return sentence != nullptr ? sentence[place] : place;
  }
  // The row that a place reads in a step.
  constexpr std::int64_t row(std::int64_t place, std::int64_t token, bool reverse) const {
    if (begin == nullptr) return place;
    return begin[place] + (reverse ? length[place] - 1 - token : token);
  }
};

// One step of a plan.
struct RecurrentStep {
  std::int64_t active = 0;  // sentences that have a token
  std::int64_t next = 0;    // and those of them that have another
  std::int64_t first = 0;   // the step's first row in step order
  std::int64_t before = 0;  // the first row of the step before
  std::int64_t token = 0;
};

// What both ways have in common: one direction of a layer.
template <class T>
struct RecurrentInputs {
  CellKind cell = CellKind::gru;
  bool reverse = false;    // from each sentence's last token to its first
  std::int64_t width = 0;  // H
  RecurrentPlan plan;
  Rows rows;
  T* gates = nullptr;  // [T, G · H], rows `gates_stride` apart
  std::int64_t gates_stride = 0;
  const T* weight = nullptr;  // [G · H, H]
  const T* packed =
      nullptr;  // the same for this way's products, as PackMatrix left it; may be null
  const T* first_h = nullptr;          // [B, H]; null: zeros
  const Summed<T>* first_c = nullptr;  // [B, H], of lstm; null: zeros
  std::int64_t state_stride = 0;       // elements from one sentence's state to the next
  T* previous = nullptr;  // [capacity + kSpareRows, H] in step order: the state that a token met
  // [capacity + kSpareRows, H] in step order; lstm: c', gru: b of the gate n.
  Summed<T>* kept = nullptr;

  Work work() const {
    const double rows_width = static_cast<double>(rows.capacity) * static_cast<double>(width);
    return {.flops = 2.0 * static_cast<double>(gates_of(cell) * width) * rows_width};
  }
};

// Reads a from `gates` and leaves the gates there, after their non-linearity.
template <class T>
struct Recurrence {
  RecurrentInputs<T> in;
  const T* bias = nullptr;  // b_hh, [G · H]
  T* out = nullptr;         // [T, H] h'; tail rows become zero
  std::int64_t out_stride = 0;
  T* last_h = nullptr;          // [B, H] after each sentence's last step; may be null
  Summed<T>* last_c = nullptr;  // [B, H]; may be null

  const char* name() const { return "recurrence"; }
  Work work() const { return in.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Recurrence<T>& p);

// Reads the gates and leaves the gradient of a in their place.
template <class T>
struct RecurrenceBackward {
  RecurrentInputs<T> in;
  const T* d_out = nullptr;  // [T, H]; null: nothing depends on it
  std::int64_t d_out_stride = 0;
  const T* d_last_h = nullptr;          // [B, H]; null: zeros
  const Summed<T>* d_last_c = nullptr;  // [B, H]; null: zeros
  T* d_b = nullptr;  // [capacity + kSpareRows, G · H] in step order; from the count to capacity: 0
  T* d_first_h = nullptr;          // [B, H]; null: nobody wants it
  Summed<T>* d_first_c = nullptr;  // [B, H]; null: nobody wants it

  const char* name() const { return "recurrence_backward"; }
  Work work() const { return in.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const RecurrenceBackward<T>& p);

}  // namespace nunchi::kernels
