// Residual connections around sub-layers: the only place that knows pre-norm from post-norm.
//
//   post-norm (the paper):  x ← norm(x + dropout(f(x)))
//   pre-norm:               x ← x + dropout(f(norm(x)))
//
// Either way a sub-layer leaves its branch pending in the stream, and the norm that follows adds it
// in the same pass (ops/residual_stream.h).
//
// For experiments, a stack can do without the sum (x ← norm(f(x)) or f(norm(x))), without the norms
// (x ← x + f(x)), or without both (x ← f(x)).
#pragma once

#include "nunchi/nn/layer_input.h"
#include "nunchi/nn/parameters.h"

namespace nunchi::nn {

enum class NormPlacement : std::uint8_t { post, pre };

// A norm whose gamma and, for NormKind::layer, beta are added to `parameters`.
Norm make_norm(Parameters& parameters, const std::string& name, NormKind kind, std::int64_t width,
               double epsilon = Norm().epsilon);

class Residual {
 public:
  struct Options {
    NormPlacement placement = NormPlacement::post;
    NormKind norm = NormKind::layer;
    std::int64_t width = 0;
    float dropout = 0;                // on the branch
    double epsilon = Norm().epsilon;  // of the norm
    bool add_input = true;            // the residual connection: x + f(x), not f(x) alone
    bool normalize = true;
  };
  Residual(Parameters& parameters, const std::string& name, const Options& options);

  // Runs the sub-layer f: LazyNorm& [T, C] → Branch [T, C], and adds its branch to the stream.
  template <class F>
  ResidualStream operator()(ResidualStream stream, const LayerInput& in,
                            const TapLocation& location, F&& f) const {
    LazyNorm x = input(std::move(stream), in.rows);
    Branch branch = f(x);
    ResidualStream result = output(x, std::move(branch), in.rows);
    if (x.context().trace() != nullptr) trace(x, result, in, location);
    return result;
  }

 private:
  LazyNorm input(ResidualStream stream, const Ragged& batch) const;
  ResidualStream output(LazyNorm& x, Branch branch, const Ragged& batch) const;
  void trace(LazyNorm& x, const ResidualStream& result, const LayerInput& in,
             const TapLocation& location) const;

  NormPlacement placement_;
  bool add_input_;
  std::optional<Norm> norm_;
  Dropout dropout_;
};

// The end of a stack. Pre-norm has a final norm here; post-norm has ended with the norm of its last
// sub-layer.
class StreamEnd {
 public:
  StreamEnd(Parameters& parameters, const std::string& name, const Residual::Options& options);
  Variable operator()(ResidualStream stream, const Ragged& batch) const;  // [T, C]

 private:
  std::optional<Norm> norm_;  // pre-norm only
};

}  // namespace nunchi::nn
