// The rows of a decode step's new tokens: their slots in the cache and their embeddings, in one
// kernel where a device gains by it.
#pragma once

#include "nunchi/kernels/decode_attention.h"
#include "nunchi/kernels/embedding.h"

namespace nunchi::kernels {

template <class T>
struct StepRows {
  ExtendSlots slots;
  Embedding<T> embedding;  // its rows' positions and count are those that `slots` leaves

  const char* name() const { return slots.name(); }
  Work work() const { return embedding.work(); }
};

template <class T>
inline constexpr bool kOfParts<StepRows<T>> = true;

namespace cpu {
template <class T>
inline constexpr bool kOneVersion<StepRows<T>> = true;
}  // namespace cpu

}  // namespace nunchi::kernels
