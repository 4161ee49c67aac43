// The heads of a model whose cross-attention aligns words best, in generation_config.json:
//
//   "alignment_heads": [[2, 0], [2, 3]]
//
// The key and its form are those of Whisper models.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "nunchi/base/options.h"

namespace nunchi {

// A decoder layer and a head of its cross-attention, both from 0.
struct AlignmentHead {
  std::int32_t layer = 0, head = 0;
  bool operator==(const AlignmentHead&) const = default;
};

// An alignment is the mean of the weights of these heads. Empty: not known.
using AlignmentHeads = std::vector<AlignmentHead>;

void visit_alignment_heads(auto& visitor, auto& heads) {
  visitor.integer_pairs("alignment_heads", heads, 0, 1 << 16);
}

// The heads that a folder's generation_config.json names, if any. Throws Error for a file that is
// broken.
AlignmentHeads load_alignment_heads(const std::filesystem::path& folder);

}  // namespace nunchi
