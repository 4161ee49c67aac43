// Adam over flat buffers in one pass, with clipping by the global norm.
//
// Values that change from step to step are read from device memory, so that a captured step can be
// replayed.
#pragma once

#include <cstdint>

#include "nunchi/kernels/run.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

// Settings of one weight update, in device memory.
struct AdamSettings {
  double learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.98;
  double epsilon = 1e-9;
  double weight_decay = 0;  // decoupled, as in AdamW; 0: plain Adam
  double max_norm = 0;      // 0: no clipping
  double tokens = 1;        // gradients are sums over tokens; they are divided once by this number
  std::int64_t step = 0;    // number of this update, from 1
};

// Results of clip_scale, in device memory.
struct AdamReport {
  double gradient_norm = 0;  // norm of the mean gradient, before clipping
  double scale = 0;          // factor applied to each summed gradient; 0: the step is skipped
};

// Sets the scale: 0 if the norm or a loss is not finite, else 1 / tokens, multiplied by
// max_norm / (norm + 1e-6) if the norm exceeds max_norm.
struct ClipScale {
  const AdamSettings* settings = nullptr;
  std::int64_t loss_count = 0;
  const double* losses = nullptr;        // [loss_count]
  const double* squared_norm = nullptr;  // [1] squared norm of the summed gradients
  AdamReport* report = nullptr;

  static constexpr bool kIsaIndependent = true;
  const char* name() const { return "clip_scale"; }
  Work work() const { return {}; }
};

template <class Target>
void compute(ContextOf<Target>& ctx, const ClipScale& p);

// One step of Adam or AdamW over all parameters. Sets the gradients to zero for the next step. With
// a scale of zero (the norm or a loss was not finite) weights and moments stay unchanged.
template <class T>
struct Adam {
  std::int64_t count = 0;
  std::int64_t decayed_count = 0;  // weight decay applies to this many first weights: the matrices
  const AdamSettings* settings = nullptr;
  const AdamReport* report = nullptr;
  T* weights = nullptr;        // [count]
  T* gradients = nullptr;      // [count]
  T* first_moment = nullptr;   // [count]
  T* second_moment = nullptr;  // [count]
  // [count] bf16 copy of the weights, which products read; null: products read `weights`.
  BFloat16* bf16_weights = nullptr;

  const char* name() const { return "adam"; }
  Work work() const { return {.bytes = 8.0 * static_cast<double>(count) * sizeof(T)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Adam<T>& p);

}  // namespace nunchi::kernels
