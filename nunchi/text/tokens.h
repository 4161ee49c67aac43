// Sentences as numbers.
#pragma once

#include <cstdint>
#include <vector>

namespace nunchi {

// Token numbers of one sentence.
using Tokens = std::vector<std::int32_t>;

struct SpecialTokens {
  std::int32_t begin = 1;  // <s>
  std::int32_t end = 2;    // </s>
  bool operator==(const SpecialTokens&) const = default;
};

}  // namespace nunchi
