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
  std::uint32_t stream = 0;  // each number gives another set of sentences
};

// The sentences contain no special tokens.
inline std::vector<Tokens> random_sentences(const RandomSentences& options) {
  constexpr std::int64_t kSpecialTokens = 4;
  std::vector<Tokens> sentences(static_cast<std::size_t>(options.count));
  const philox::Key key = philox::key_of({.seed = 1});
  const std::int64_t range = std::max<std::int64_t>(1, options.vocabulary - kSpecialTokens);
  for (std::size_t b = 0; b < sentences.size(); ++b) {
    for (std::int64_t i = 0; i < options.length; ++i) {
      const philox::Words words = philox::bits(
          {static_cast<std::uint32_t>(i), 0, static_cast<std::uint32_t>(b), options.stream}, key);
      sentences[b].push_back(static_cast<std::int32_t>(
          std::min(kSpecialTokens, options.vocabulary - 1) + words[0] % range));
    }
  }
  return sentences;
}

}  // namespace nunchi::benchmark
