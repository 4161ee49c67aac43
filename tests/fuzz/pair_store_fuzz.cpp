// Any bytes: PairStore throws an Error, or all its pairs can be read.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/data/content_hash.h"
#include "nunchi/data/pair_store.h"

namespace {

void read(std::span<const std::byte> bytes) {
  std::optional<nunchi::PairStore> store;
  try {
    store.emplace(nunchi::RandomAccessFile(bytes, "fuzz"));
  } catch (const nunchi::Error&) {
    return;
  }
  // An accepted file must be readable: an exception from here on ends the program.
  store->tokens_are_intact();
  nunchi::Tokens buffer;
  for (std::int64_t pair = 0; pair < store->size(); ++pair) {
    const auto [source, target] = store->read(pair, buffer);
    const bool right_lengths = std::ssize(source) == store->source_length(pair) &&
                               std::ssize(target) == store->target_length(pair);
    if (!right_lengths || target.empty()) __builtin_trap();
    if (store->has_sources() ? source.size() < 2 : !source.empty()) __builtin_trap();
  }
  buffer.resize(static_cast<std::size_t>(store->token_count()));
  store->read_text(0, buffer);
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
  std::vector<std::uint8_t> copy(data, data + size);
  const auto bytes = std::as_writable_bytes(std::span(copy));
  read(bytes);
  correct_digest(bytes);
  read(bytes);
  return 0;
}
