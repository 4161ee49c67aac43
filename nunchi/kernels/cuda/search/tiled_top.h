// The best logits of each chunk of the vocabulary, written by a product's kernel and merged by the
// kernel that is launched next.
#pragma once

#include "nunchi/kernels/cuda/search/projection_top_tokens.h"
#include "nunchi/kernels/cuda/search/vocabulary_chunks.h"

namespace nunchi::kernels {

// Integers that the product's kernel sets to 0 for the kernel after it.
struct Zeros {
  std::int32_t* at = nullptr;
  int count = 0;
};

// The best logits of each chunk, for the kernel that is launched next. Requires
// can_find_in_tiles().
class TiledTop {
 public:
  // Launches the product.
  TiledTop(CudaContext& ctx, const ProjectionTopTokens<BFloat16>& p, const Zeros& zeros = {});
  const Merge& merge() const { return merge_; }

 private:
  static std::size_t chunks_of(const ProjectionTopTokens<BFloat16>& p);
  static std::size_t bytes_of(const ProjectionTopTokens<BFloat16>& p);
  ScratchMemory memory_;  // keys and summaries of the chunks
  Merge merge_;
};

}  // namespace nunchi::kernels
