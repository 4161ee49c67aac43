// Input rows of a decode step: assigns cache slots to the new tokens and embeds them, in one kernel
// where that is faster.
#pragma once

#include "nunchi/kernels/decode_attention.h"
#include "nunchi/kernels/embedding.h"

namespace nunchi::kernels {

template <class T>
struct StepRows {
  ExtendSlots slots;
  Embedding<T> embedding;  // reads the row positions and the row count that `slots` writes

  static constexpr bool kIsComposite = true;
  static constexpr bool kIsaIndependent = true;
  const char* name() const { return slots.name(); }
  Work work() const { return embedding.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const StepRows<T>& p);

}  // namespace nunchi::kernels
