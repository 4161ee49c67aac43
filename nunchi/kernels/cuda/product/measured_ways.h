// One of several ways to a result, by what each was measured to take, and its line in a profile.
#pragma once

#include <limits>
#include <string>

#include "nunchi/kernels/cuda/product/multiplication.h"

namespace nunchi::kernels {

// The fastest of several ways to one result. Where a product was too short to be measured, the
// first that is possible is as good as any.
class Fastest {
 public:
  void consider(int way, const Algorithm& product, double rest) {
    const double seconds = product.seconds == 0 ? 0 : product.seconds + rest;
    if (!product.possible || seconds >= best_) return;
    best_ = seconds;
    way_ = way;
  }
  int way() const { return way_; }

 private:
  double best_ = std::numeric_limits<double>::infinity();
  int way_ = 0;
};

// Starts f() as one entry of a profile: the product's label with what rides on it. False where f()
// could not start.
template <class F>
bool start_as(CudaContext& ctx, const char* label, const char* rider, const Work& work, F&& f) {
  Profile* profile = ctx.profile();
  if (profile == nullptr) return f();
  if (profile->timed()) ctx.start_clock();
  if (!f()) return false;
  profile->add((std::string(label) + rider).c_str(), profile->timed() ? ctx.stop_clock() : 0, work);
  return true;
}

}  // namespace nunchi::kernels
