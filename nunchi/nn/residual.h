// The residual stream that sub-layers read from and add to, and the one place that knows pre-norm
// from post-norm.
//
//   post-norm (the paper):  x ← norm(x + dropout(f(x)))
//   pre-norm:               x ← x + dropout(f(norm(x)))
//
// Both are one fused pass per sub-layer: in pre-norm a branch waits in the stream until the next
// norm, which adds it on the way.
#pragma once

#include "nunchi/nn/linear.h"
#include "nunchi/nn/parameters.h"
#include "nunchi/ops/decode/norm_linear.h"
#include "nunchi/ops/residual_norm.h"

namespace nunchi::nn {

enum class NormPlacement : std::uint8_t { post, pre };

struct Stream {
  Variable value;   // [T, C]
  Variable branch;  // [T, C] still to be added; undefined: nothing waits
  Dropout dropout;  // of the waiting branch
  Norm norm;        // of their sum, while nobody records: it waits for who reads it first
};

// What a sub-layer reads while nobody records: a normalisation that waits until its rows are
// needed, so that it can be one kernel with the product that needs them first.
class PendingNorm {
 public:
  // With no gamma in `norm`: the stream's value as it is.
  PendingNorm(const Stream& stream, const Norm& norm, const Ragged& rows,
              NormPlacement placement = NormPlacement::post)
      : stream_(stream), norm_(norm), rows_(rows), placement_(placement) {}

  // The layer over the normalised rows.
  Variable through(const nunchi::Linear& layer);
  Variable through(const Linear& layer) { return through(layer.parameters()); }
  // The stream after a sub-layer that ends with `layer` over `last`. Where products add, nothing
  // waits in it.
  Stream join(const Linear& layer, const Variable& last);
  // The normalised rows, and the sum that they come from.
  const Variable& out();
  const Variable& sum();

 private:
  void settle();
  const Stream& stream_;
  const Norm& norm_;
  const Ragged& rows_;
  NormPlacement placement_;
  Variable sum_, out_;
};

// Parameters of a normalisation, made for a model.
Norm make_norm(Parameters& parameters, const std::string& name, NormKind kind, std::int64_t width,
               double epsilon = Norm().epsilon);

class Residual {
 public:
  struct Options {
    NormPlacement placement = NormPlacement::post;
    NormKind norm = NormKind::layer;
    std::int64_t width = 0;
    float dropout = 0;
    double epsilon = Norm().epsilon;  // of the norm
  };
  Residual(Parameters& parameters, const std::string& name, const Options& options)
      : placement_(options.placement),
        norm_(make_norm(parameters, name + ".norm", options.norm, options.width, options.epsilon)),
        dropout_{options.dropout, parameters.next_place()} {}

  // Runs the sub-layer f: [T, C] → [T, C] around the stream.
  template <class F>
  Stream around(const Stream& stream, const Ragged& batch, F&& f) const {
    if (placement_ == NormPlacement::post) {
      return {residual_norm(stream.value, f(stream.value), batch, norm_, dropout_).out, {}, {}, {}};
    }
    const auto [sum, normal] =
        residual_norm(stream.value, stream.branch, batch, norm_, stream.dropout);
    return {sum, f(normal), dropout_, {}};
  }

  // The same while nobody records; f reads a PendingNorm and ends with its join().
  template <class F>
  Stream step(const Stream& stream, const Ragged& rows, F&& f) const {
    const bool post = placement_ == NormPlacement::post;
    PendingNorm x(stream, post ? stream.norm : norm_, rows, placement_);
    Stream next = f(x);
    if (post) next.norm = norm_;
    return next;
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
