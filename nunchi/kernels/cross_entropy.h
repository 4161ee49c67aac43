// Label-smoothed cross-entropy of rows of logits. Its gradient can overwrite the logits.
#pragma once

#include <cstdint>

#include "nunchi/kernels/rows.h"
#include "nunchi/kernels/run.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

// loss[t] = -(1 - s) log p[target] - (s / V) sum_v log p[v], with p = softmax(logits).
// With `write_gradient` the logits become d loss / d logits; rows past the count become zero.
template <class T>
struct CrossEntropy {
  Rows rows;                    // the rows of the whole batch
  std::int64_t first_row = 0;   // the chunk's first row in the batch
  std::int64_t chunk_rows = 0;  // number of rows of this chunk
  std::int64_t vocabulary = 0;
  double smoothing = 0;
  bool write_gradient = false;
  const std::int32_t* targets = nullptr;  // [chunk_rows]
  T* logits = nullptr;                    // [chunk_rows, V]
  Accumulator<T>* loss = nullptr;         // [chunk_rows]; zero past the count

  const char* name() const { return "cross_entropy"; }
  Work work() const {
    return {.bytes = (write_gradient ? 2.0 : 1.0) * static_cast<double>(chunk_rows * vocabulary) *
                     sizeof(T)};
  }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const CrossEntropy<T>& p);

}  // namespace nunchi::kernels
