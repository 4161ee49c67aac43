// Normalisation of rows, fused with the dropout and residual sum before it. A row's result depends
// only on that row, summed in a fixed order: the rest of the batch does not change a bit of it.
#pragma once

#include <cstdint>

#include "nunchi/kernels/dropout.h"
#include "nunchi/kernels/rows.h"
#include "nunchi/kernels/run.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

enum class NormKind : std::uint8_t { layer, rms };

// sum = residual + dropout(branch);  out = (sum - mean) * rstd * gamma + beta.
// rms has mean 0 and no beta. Saves mean and rstd for the backward pass.
template <class T>
struct ResidualNorm {
  NormKind kind = NormKind::layer;
  Rows rows;
  std::int64_t width = 0;  // C
  double epsilon = 1e-5;
  Dropout dropout;                 // applied to the branch
  const T* residual = nullptr;     // [T, C]
  const T* branch = nullptr;       // [T, C]; null: residual is normalised, sum is not written
  const T* gamma = nullptr;        // [C]
  const T* beta = nullptr;         // [C]
  T* sum = nullptr;                // [T, C]
  T* out = nullptr;                // [T, C]
  Accumulator<T>* mean = nullptr;  // [T]
  Accumulator<T>* rstd = nullptr;  // [T]

  const char* name() const { return "residual_norm"; }
  Work work() const {
    return {.bytes = (branch != nullptr ? 4.0 : 2.0) * static_cast<double>(rows.capacity * width) *
                     sizeof(T)};
  }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ResidualNorm<T>& p);

// The backward pass. Adds to d_gamma and d_beta, and to d_residual with accumulate_residual;
// overwrites the other gradients, tail rows with zeros.
template <class T>
struct ResidualNormBackward {
  NormKind kind = NormKind::layer;
  Rows rows;
  std::int64_t width = 0;
  Dropout dropout;
  const T* sum = nullptr;                // [T, C]
  const T* gamma = nullptr;              // [C]
  const Accumulator<T>* mean = nullptr;  // [T]
  const Accumulator<T>* rstd = nullptr;  // [T]
  const T* d_out = nullptr;              // [T, C]
  const T* d_sum = nullptr;  // [T, C] gradient of `sum` from its other consumers; may be null
  T* d_residual = nullptr;   // [T, C]
  bool accumulate_residual = false;
  T* d_branch = nullptr;              // [T, C]; null: not wanted
  Accumulator<T>* d_gamma = nullptr;  // [C]
  Accumulator<T>* d_beta = nullptr;   // [C]; null for rms

  const char* name() const { return "residual_norm_backward"; }
  Work work() const {
    const double passes = 3.0 + (d_sum != nullptr) + accumulate_residual + (d_branch != nullptr);
    return {.bytes = passes * static_cast<double>(rows.capacity * width) * sizeof(T)};
  }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ResidualNormBackward<T>& p);

}  // namespace nunchi::kernels
