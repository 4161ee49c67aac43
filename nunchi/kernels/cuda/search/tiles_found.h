// What a product's tiles leave behind, for the kernel that is started next.
#pragma once

#include "nunchi/kernels/cuda/search/stretches.h"
#include "nunchi/kernels/cuda/search/top_of_product.h"

namespace nunchi::kernels {

// Numbers that become 0 before the next kernel begins.
struct Zeros {
  std::int32_t* at = nullptr;
  int count = 0;
};

// What was found in the tiles of a product, to be merged by the kernel that is started next. For
// those that are found_in_tiles().
class TilesFound {
 public:
  // Starts the product.
  TilesFound(CudaContext& ctx, const TopOfProduct<BFloat16>& p, const Zeros& zeros = {});
  const Merge& merge() const { return merge_; }

 private:
  static std::size_t stretches_of(const TopOfProduct<BFloat16>& p);
  static std::size_t bytes_of(const TopOfProduct<BFloat16>& p);
  ScratchMemory memory_;  // of the stretches
  Merge merge_;
};

}  // namespace nunchi::kernels
