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

  static constexpr bool kIsComposite = true;
  static constexpr bool kIsaIndependent = true;
  const char* name() const { return slots.name(); }
  Work work() const { return embedding.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const StepRows<T>& p);

}  // namespace nunchi::kernels
