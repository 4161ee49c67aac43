#include "nunchi/data/content_hash.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <string>

#include "nunchi/base/random.h"
#include "tests/files.h"

namespace nunchi {
namespace {

using testing::bytes;

std::string noise(std::size_t size) {
  std::string text;
  for (std::uint32_t i = 0; text.size() < size; ++i) {
    text += static_cast<char>(philox::bits({i, 0, 0, 0}, {7, 7})[0]);
  }
  return text;
}

Digest digest_of(std::string_view text) { return ContentHash().update(bytes(text)).digest(); }

TEST(ContentHash, DoesNotDependOnHowTheBytesAreDivided) {
  const std::string text = noise(200);
  for (std::size_t step = 1; step < 70; ++step) {
    ContentHash hash;
    for (std::size_t begin = 0; begin < text.size(); begin += step) {
      hash.update(bytes(std::string_view(text).substr(begin, step)));
    }
    EXPECT_EQ(hash.digest(), digest_of(text)) << step;
  }
}

// The expected values are the output of xxhsum -H2.
TEST(ContentHash, IsXxh3) {
  EXPECT_EQ(digest_of("").hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(digest_of("the quick brown fox jumps over the lazy dog").hex(),
            "e9a1932627d7f46d15c21eead63fa21f");
  EXPECT_EQ(digest_of(std::string(1000, 'x')).hex(), "50a1af5a5f2dcf01c0a4877b962cba82");
}

TEST(ContentHash, DependsOnTheNumberOfZeroBytes) {
  std::set<std::string> seen;
  for (std::size_t size = 0; size < 130; ++size)
    seen.insert(digest_of(std::string(size, '\0')).hex());
  EXPECT_EQ(seen.size(), 130u);
}

TEST(ContentHash, CanBeUpdatedAfterADigest) {
  ContentHash hash;
  hash.update(bytes("one "));
  EXPECT_EQ(hash.digest(), digest_of("one "));
  hash.update(bytes("two"));
  EXPECT_EQ(hash.digest(), digest_of("one two"));
}

// Flipping any bit of the input changes about half of the 128 bits.
TEST(ContentHash, EveryBitCounts) {
  const std::string text = noise(100);
  const Digest before = digest_of(text);
  int changed = 0;
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string other = text;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << bit % 8));
    const Digest after = digest_of(other);
    const int changed_here =
        std::popcount(before.low ^ after.low) + std::popcount(before.high ^ after.high);
    EXPECT_GT(changed_here, 30) << bit;
    changed += changed_here;
  }
  EXPECT_NEAR(changed / 800.0, 64.0, 1.0);
}

}  // namespace
}  // namespace nunchi
