// Chooses the fastest of several implementations of one operation by measurement, and launches it
// as one profile entry.
#pragma once

#include <limits>
#include <string>

#include "nunchi/kernels/cuda/product/cublaslt_product.h"

namespace nunchi::kernels {

// Keeps the fastest variant. If a product was too short to measure, the first possible variant
// wins.
class FastestVariant {
 public:
  // `other_seconds` is the time of the variant's kernels besides the product.
  void consider(int variant, const Algorithm& product, double other_seconds) {
    const double seconds = product.seconds == 0 ? 0 : product.seconds + other_seconds;
    if (!product.possible || seconds >= best_) return;
    best_ = seconds;
    variant_ = variant;
  }
  int variant() const { return variant_; }

 private:
  double best_ = std::numeric_limits<double>::infinity();
  int variant_ = 0;
};

// Calls f() and records it as one profile entry: the product's label with a suffix that names the
// fused operations. Returns false if f() launched nothing.
template <class F>
bool launch_as(CudaContext& ctx, const char* label, const char* suffix, const Work& work, F&& f) {
  Profile* profile = ctx.profile();
  if (profile == nullptr) return f();
  if (profile->timed()) ctx.start_clock();
  if (!f()) return false;
  profile->add((std::string(label) + suffix).c_str(), profile->timed() ? ctx.stop_clock() : 0,
               work);
  return true;
}

}  // namespace nunchi::kernels
