// The residual stream that sub-layers read from and add to, and the one place that knows pre-norm
// from post-norm.
//
//   post-norm (the paper):  x ← norm(x + dropout(f(x)))
//   pre-norm:               x ← x + dropout(f(norm(x)))
//
// Both are one fused pass per sub-layer: in pre-norm a branch waits in the stream until the next
// norm, which adds it on the way.
#pragma once

#include "nunchi/nn/parameters.h"
#include "nunchi/ops/residual_norm.h"

namespace nunchi::nn {

enum class NormPlacement : std::uint8_t { post, pre };

struct Stream {
  Variable value;   // [T, C]
  Variable branch;  // [T, C] still to be added; undefined: nothing waits
  Dropout dropout;  // of the waiting branch
};

// Parameters of a normalisation, made for a model.
Norm make_norm(Parameters& parameters, const std::string& name, NormKind kind, std::int64_t width);

class Residual {
 public:
  struct Options {
    NormPlacement placement = NormPlacement::post;
    NormKind norm = NormKind::layer;
    std::int64_t width = 0;
    float dropout = 0;
  };
  Residual(Parameters& parameters, const std::string& name, const Options& options)
      : placement_(options.placement),
        norm_(make_norm(parameters, name + ".norm", options.norm, options.width)),
        dropout_{options.dropout, parameters.next_place()} {}

  // Runs the sub-layer f: [T, C] → [T, C] around the stream.
  template <class F>
  Stream around(const Stream& stream, const Ragged& batch, F&& f) const {
    if (placement_ == NormPlacement::post) {
      return {residual_norm(stream.value, f(stream.value), batch, norm_, dropout_).out, {}, {}};
    }
    const auto [sum, normal] =
        residual_norm(stream.value, stream.branch, batch, norm_, stream.dropout);
    return {sum, f(normal), dropout_};
  }

 private:
  NormPlacement placement_;
  Norm norm_;
  Dropout dropout_;
};

// The end of a stack: pre-norm needs one more norm, post-norm has had its last.
class StreamEnd {
 public:
  StreamEnd(Parameters& parameters, const std::string& name, const Residual::Options& options);
  Variable operator()(const Stream& stream, const Ragged& batch) const;

 private:
  Norm norm_;  // undefined for post-norm
};

// The stream's value with what waits in it added, for those who look on.
Variable settled(const Stream& stream, const Ragged& batch);

}  // namespace nunchi::nn
