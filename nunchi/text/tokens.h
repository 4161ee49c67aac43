// Sentences as numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace nunchi {

// Token numbers of one sentence.
using Tokens = std::vector<std::int32_t>;

struct SpecialTokens {
  std::int32_t begin = 1;  // <s>
  std::int32_t end = 2;    // </s>
  bool operator==(const SpecialTokens&) const = default;
};

// <s> text </s>, the text cut where all of it would be longer than `longest`, which is at least 2.
inline Tokens enclosed(std::span<const std::int32_t> text, const SpecialTokens& special,
                       std::int64_t longest) {
  const auto room = static_cast<std::size_t>(longest - 2);
  const auto kept = text.first(std::min(text.size(), room));
  Tokens all{special.begin};
  all.insert(all.end(), kept.begin(), kept.end());
  all.push_back(special.end);
  return all;
}

}  // namespace nunchi
