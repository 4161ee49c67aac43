// The fastest of several implementations of one result, chosen by measurement, and its profile
// entry.
#pragma once

#include <limits>
#include <string>

#include "nunchi/kernels/cuda/product/cublaslt_product.h"

namespace nunchi::kernels {

// Keeps the fastest variant. If a product was too short to measure, the first possible variant
// wins.
class FastestVariant {
 public:
  void consider(int variant, const Algorithm& product, double rest) {
    const double seconds = product.seconds == 0 ? 0 : product.seconds + rest;
    if (!product.possible || seconds >= best_) return;
    best_ = seconds;
    variant_ = variant;
  }
  int variant() const { return variant_; }

 private:
  double best_ = std::numeric_limits<double>::infinity();
  int variant_ = 0;
};

// Launches f() as one profile entry: the product's label with a suffix for what is fused into it.
// False if f() launched nothing.
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
