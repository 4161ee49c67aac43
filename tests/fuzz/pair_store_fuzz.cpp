// Any bytes: parse_pairs() throws an Error, or all its spans are inside of the bytes.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/data/content_hash.h"
#include "nunchi/data/pair_store.h"

namespace {

void read(std::span<const std::byte> bytes) {
  try {
    const nunchi::PairStore store = nunchi::parse_pairs(bytes, "fuzz");
    volatile unsigned sum =
        store.tokens_are_intact();  // keeps the compiler from removing the reads
    for (std::int64_t pair = 0; pair < store.size(); ++pair) {
      for (const std::int32_t token : store.source(pair)) sum = sum + static_cast<unsigned>(token);
      for (const std::int32_t token : store.target(pair)) sum = sum + static_cast<unsigned>(token);
      if (store.source_length(pair) < 2 || store.target_length(pair) < 1) __builtin_trap();
    }
  } catch (const nunchi::Error&) {
  }
}

// After most mutations the index's digest is wrong. Correcting it lets them reach later checks.
void correct_digest(std::span<std::byte> bytes) {
  constexpr std::size_t kFooter = 17 * 8, kDigest = 16, kTokens = 4 * 8, kHeader = 64;
  if (bytes.size() < kHeader + kFooter) return;
  std::uint64_t tokens = 0;
  std::memcpy(&tokens, bytes.data() + bytes.size() - kFooter + kTokens, sizeof tokens);
  if (tokens > bytes.size()) return;
  const std::size_t begin = kHeader + (4 * tokens + 7) / 8 * 8, end = bytes.size() - kDigest;
  if (begin > end) return;
  const auto digest = nunchi::ContentHash().update(bytes.subspan(begin, end - begin)).digest();
  std::memcpy(bytes.data() + end, &digest, sizeof digest);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // 8-byte words, because the address must be a multiple of 8, as that of a mapped file.
  std::vector<std::uint64_t> words(size / 8 + 1);
  if (size > 0) std::memcpy(words.data(), data, size);
  const auto bytes = std::as_writable_bytes(std::span(words)).first(size);
  read(bytes);
  correct_digest(bytes);
  read(bytes);
  return 0;
}
