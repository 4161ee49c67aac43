// Any bytes: parse_features() throws an Error, or all its spans are inside of the bytes.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/data/content_hash.h"
#include "nunchi/data/feature_store.h"

namespace {

void read(std::span<const std::byte> bytes) {
  try {
    const nunchi::FeatureStore store = nunchi::parse_features(bytes, "fuzz");
    // volatile: the compiler must not remove the reads
    [[maybe_unused]] volatile bool intact = store.values_are_intact();
    volatile float sum = 0;
    for (std::int64_t i = 0; i < store.size(); ++i) {
      if (store.rows(i) < 1) __builtin_trap();
      for (const float value : store.values(i)) sum = sum + value;
    }
  } catch (const nunchi::Error&) {
  }
}

// Most mutations break the digest of the table and footer, and parsing stops there. Correcting the
// digest lets the mutated bytes reach the later checks.
void correct_digest(std::span<std::byte> bytes) {
  constexpr std::size_t kFooterBytes = 11 * 8, kDigestBytes = 16, kRowCountOffset = 4 * 8,
                        kHeaderBytes = 64;
  if (bytes.size() < kHeaderBytes + kFooterBytes) return;
  std::uint64_t counts[2] = {};  // rows, width
  std::memcpy(counts, bytes.data() + bytes.size() - kFooterBytes + kRowCountOffset, sizeof counts);
  if (counts[0] > bytes.size() || counts[1] > bytes.size()) return;
  const std::size_t begin = kHeaderBytes + (4 * counts[0] * counts[1] + 7) / 8 * 8;
  const std::size_t end = bytes.size() - kDigestBytes;
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
