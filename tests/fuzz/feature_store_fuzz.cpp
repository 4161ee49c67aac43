// Any bytes: FeatureStore throws an Error, or all its values can be read.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/data/content_hash.h"
#include "nunchi/data/feature_store.h"

namespace {

void read(std::span<const std::byte> bytes) {
  std::optional<nunchi::FeatureStore> store;
  try {
    store.emplace(nunchi::RandomAccessFile(bytes, "fuzz"));
  } catch (const nunchi::Error&) {
    return;
  }
  // An accepted file must be readable: an exception from here on ends the program.
  store->values_are_intact();
  for (std::int64_t i = 0; i < store->size(); ++i) {
    const std::vector<float> values = store->values(i);
    if (values.empty() || std::ssize(values) != store->rows(i) * store->width()) __builtin_trap();
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
  std::vector<std::uint8_t> copy(data, data + size);
  const auto bytes = std::as_writable_bytes(std::span(copy));
  read(bytes);
  correct_digest(bytes);
  read(bytes);
  return 0;
}
