// Pair stores for tests.
#pragma once

#include <cstdint>
#include <filesystem>

#include "nunchi/base/random.h"
#include "nunchi/data/pair_store.h"
#include "nunchi/text/tokens.h"

namespace nunchi::testing {

// `count` random pairs that depend only on `seed`. Each side has 1 to 30 tokens, without </s>.
inline PairStore random_store(const std::filesystem::path& path, std::int32_t count,
                              std::uint32_t seed = 1) {
  PairWriter writer(path, {seed, static_cast<std::uint64_t>(count)});
  for (std::int32_t pair = 0; pair < count; ++pair) {
    const auto random = philox::bits({static_cast<std::uint32_t>(pair), 0, 0, 0}, {seed, 3});
    Tokens tokens(1 + random[0] % 30, 4 + pair % 500);
    tokens.push_back(kUsualSpecialTokens.end);
    const auto source_length = static_cast<std::uint32_t>(tokens.size());
    tokens.resize(tokens.size() + 1 + random[1] % 30, 5 + pair % 500);
    writer.add(tokens, source_length);
  }
  writer.commit({.lines = count, .kept = count});
  return PairStore::open(path);
}

}  // namespace nunchi::testing
