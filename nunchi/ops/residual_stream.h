// The residual stream of a stack of layers, and the two ends of a branch: the normalised rows that
// a sub-layer reads (LazyNorm) and the rows that it adds (Branch).
//
// Sums and norms stay pending until something reads them, so that they can be fused with
// the operations before and after them:
//   sentences     sum, dropout of the branch and norm are one pass (residual_norm)
//   decode step   each kernel is short, so the norm is one kernel with the first product over it
//                 (norm_linear), and the sum one with the product that ends the branch
//                 (linear_add), where the device has such kernels
#pragma once

#include <optional>

#include "nunchi/ops/linear.h"
#include "nunchi/ops/residual_norm.h"

namespace nunchi {

// The kind of rows decides which operations are fused.
enum class StreamRows : std::uint8_t { sentences, decode_step };

struct PendingBranch {
  Variable rows;    // [T, C], to be added to the stream
  Dropout dropout;  // applied to these rows
};

// Between two sub-layers: norm(value + dropout(branch)), where branch and norm may be absent.
struct ResidualStream {
  StreamRows kind = StreamRows::sentences;
  Variable value;                            // [T, C]
  std::optional<PendingBranch> branch = {};  // none: there is nothing to add
  std::optional<Norm> norm = {};             // norm of the sum; none: the sum is not normalised
};

// The rows that a sub-layer reads, computed when they are first needed. Not thread-safe.
class LazyNorm {
 public:
  // The rows of `stream`, normalised by its own norm or, if it has none, by `norm`; if that is null
  // too, they are not normalised. `batch` must outlive this object.
  LazyNorm(ResidualStream stream, const Norm* norm, const Ragged& batch);

  const Variable& rows();  // [T, C] normalised
  const Variable& sum();   // [T, C] before the norm
  StreamRows kind() const { return stream_.kind; }
  ContextBase& context() const { return context_; }
  // Whether linear() fuses the norm with the layer: in a decode step, if the rows are not computed
  // yet, no tape records and no dropout is active.
  bool fuses_product() const;

 private:
  friend Variable linear(LazyNorm& x, const Linear& layer);
  void compute();
  void set(Variable sum, Variable rows);

  ContextBase& context_;
  ResidualStream stream_;  // released when the rows are computed
  std::optional<Norm> norm_;
  const Ragged& batch_;
  Variable sum_, rows_;
};

// The layer's output for the normalised rows: [T, N].
Variable linear(LazyNorm& x, const Linear& layer);

// The rows that a sub-layer adds to the stream.
class Branch {
 public:
  // [T, C]
  explicit Branch(Variable rows) : rows_(std::move(rows)) {}
  // The linear layer that ends the sub-layer, over `input` [T, K]; computed when it is needed.
  Branch(Variable input, Linear last) : input_(std::move(input)), last_(std::move(last)) {}

  ContextBase& context() const { return (rows_.defined() ? rows_ : input_).value().context(); }
  const Variable& rows();  // [T, C]
  // The same rows for a trace: the branch stays as it is, and nothing is recorded.
  Tensor peek() const;

  // The stream with this branch added to `residual` [T, C], or pending on it.
  ResidualStream added_to(const Variable& residual, StreamRows kind, const Dropout& dropout);

 private:
  Variable input_;
  Linear last_;
  Variable rows_;
};

// The rows of a stream for a trace, [T, C]. The stream stays as it is: what is pending is computed
// again later. Not recorded.
struct PeekedStream {
  Tensor sum;   // before the norm
  Tensor rows;  // after it; the same if there is none
};
PeekedStream peek(const ResidualStream& stream, const Ragged& batch);

}  // namespace nunchi
