// Sentences of random tokens, the same for the same arguments.
#pragma once

#include <algorithm>
#include <vector>

#include "nunchi/base/random.h"
#include "nunchi/text/tokens.h"

namespace nunchi::benchmark {

struct RandomSentences {
  std::int64_t count = 0;
  std::int64_t length = 0;
  std::int64_t vocabulary = 0;
  std::uint32_t stream = 0;  // different sets of sentences
};

// Without special tokens.
inline std::vector<Tokens> random_sentences(const RandomSentences& wanted) {
  constexpr std::int64_t kSpecial = 4;
  std::vector<Tokens> sentences(static_cast<std::size_t>(wanted.count));
  const philox::Key key = philox::key_of({.seed = 1});
  const std::int64_t range = std::max<std::int64_t>(1, wanted.vocabulary - kSpecial);
  for (std::size_t b = 0; b < sentences.size(); ++b) {
    for (std::int64_t i = 0; i < wanted.length; ++i) {
      const philox::Words words = philox::bits(
          {static_cast<std::uint32_t>(i), 0, static_cast<std::uint32_t>(b), wanted.stream}, key);
      sentences[b].push_back(
          static_cast<std::int32_t>(std::min(kSpecial, wanted.vocabulary - 1) + words[0] % range));
    }
  }
  return sentences;
}

}  // namespace nunchi::benchmark
