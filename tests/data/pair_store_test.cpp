#include "nunchi/data/pair_store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <vector>

#include "nunchi/text/tokens.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/paths.h"

namespace nunchi {
namespace {

namespace fs = std::filesystem;
using testing::content;
using testing::error_of;
using testing::says;
using testing::TemporaryFolder;
using testing::write_text;

struct Pair {
  Tokens source;  // with </s>
  Tokens target;
};

const std::vector<Pair> kPairs{
    {{5, 6, 2}, {7}}, {{8, 2}, {9, 10, 11, 12}}, {{13, 14, 2}, {15, 16}}};
constexpr Digest kKey{12, 34};

void write_pairs(const fs::path& path, const std::vector<Pair>& pairs) {
  PairWriter writer(path, kKey);
  for (const Pair& pair : pairs) {
    Tokens tokens = pair.source;
    tokens.insert(tokens.end(), pair.target.begin(), pair.target.end());
    writer.add(tokens, static_cast<std::uint32_t>(pair.source.size()));
  }
  const auto kept = static_cast<std::int64_t>(pairs.size());
  writer.commit({.lines = kept + 4, .kept = kept, .empty = 1, .too_long = 3});
}

Tokens copy(std::span<const std::int32_t> tokens) { return {tokens.begin(), tokens.end()}; }

// `contents` must outlive the result.
PairStore parse(const std::string& contents) {
  return PairStore(RandomAccessFile(testing::bytes(contents), "f"));
}

TEST(PairStore, ReturnsWhatWasWritten) {
  const TemporaryFolder folder;
  write_pairs(folder / "pairs", kPairs);
  EXPECT_EQ(folder.entry_count(), 1);
  const PairStore store = PairStore::open(folder / "pairs");
  ASSERT_EQ(store.size(), 3);
  for (std::int64_t i = 0; i < store.size(); ++i) {
    const Pair& pair = kPairs[static_cast<std::size_t>(i)];
    EXPECT_EQ(copy(store.source(i)), pair.source);
    EXPECT_EQ(copy(store.target(i)), pair.target);
    EXPECT_EQ(store.source_length(i), static_cast<std::int64_t>(pair.source.size()));
    EXPECT_EQ(store.target_length(i), static_cast<std::int64_t>(pair.target.size()));
  }
  EXPECT_EQ(store.key(), kKey);
  EXPECT_EQ(store.report(), (PairReport{.lines = 7, .kept = 3, .empty = 1, .too_long = 3}));
  EXPECT_TRUE(store.tokens_are_intact());
}

TEST(PairStore, MayBeEmptyOrHaveAnyNumberOfPairsAndTokens) {
  const TemporaryFolder folder;
  std::vector<Pair> pairs;
  for (int count = 0; count < 5; ++count) {
    write_pairs(folder / "pairs", pairs);
    const PairStore store = PairStore::open(folder / "pairs");
    EXPECT_EQ(store.size(), count);
    EXPECT_TRUE(store.tokens_are_intact());
    pairs.push_back({{5, 2}, Tokens(static_cast<std::size_t>(count + 1), 7)});
  }
}

TEST(PairStore, CanBeReadWhenItsFileIsRemovedOrReplaced) {
  const TemporaryFolder folder;
  write_pairs(folder / "pairs", kPairs);
  PairStore first = PairStore::open(folder / "pairs");
  write_pairs(folder / "other", {kPairs[2], kPairs[1]});
  fs::rename(folder / "other", folder / "pairs");
  const PairStore second = std::move(first);
  EXPECT_EQ(second.target(0), kPairs[0].target);
  fs::remove(folder / "pairs");
  EXPECT_EQ(second.target(1), kPairs[1].target);
  EXPECT_NO_THROW(second.check_intact());
}

TEST(PairStore, NoticesThatItsFileIsCutShort) {
  const TemporaryFolder folder;
  write_pairs(folder / "pairs", kPairs);
  const PairStore store = PairStore::open(folder / "pairs");
  fs::resize_file(folder / "pairs", 64 + 4 * 4);
  EXPECT_EQ(store.target(0), kPairs[0].target);
  EXPECT_TRUE(says(error_of([&] { store.target(1); }), "pairs: it was cut short while"));
  EXPECT_TRUE(says(error_of([&] { store.check_intact(); }), "pairs: it was cut short while"));
}

TEST(PairStore, NoticesThatItsFileIsOverwritten) {
  const TemporaryFolder folder;
  write_pairs(folder / "pairs", kPairs);
  const std::string whole = content(folder / "pairs");
  const PairStore store = PairStore::open(folder / "pairs");
  // The time is set, because two writes within the resolution of the clock have the same one.
  const auto overwrite = [&](const std::string& contents, int seconds) {
    write_text(folder / "pairs", contents);
    fs::last_write_time(folder / "pairs",
                        fs::file_time_type::clock::now() + std::chrono::seconds(seconds));
  };
  overwrite(whole, 1);
  EXPECT_NO_THROW(store.check_intact());
  overwrite(std::string(whole.size(), 'x'), 2);
  EXPECT_TRUE(says(error_of([&] { store.check_intact(); }),
                   "pairs was overwritten while it was in use and is damaged"));
  overwrite(whole, 3);
  EXPECT_NO_THROW(store.check_intact());
  EXPECT_EQ(store.target(1), kPairs[1].target);
}

TEST(PairStore, ManyPairsAreFlushedFromTheWritersBuffer) {
  const TemporaryFolder folder;
  PairWriter writer(folder / "pairs", kKey);
  constexpr std::int32_t kCount = 40'000;
  for (std::int32_t i = 0; i < kCount; ++i) writer.add(Tokens{i, 2, i + 1, i + 2}, 2);
  writer.commit({.lines = kCount, .kept = kCount});
  const PairStore store = PairStore::open(folder / "pairs");
  ASSERT_EQ(store.size(), kCount);
  for (std::int32_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(copy(store.source(i)), (Tokens{i, 2}));
    ASSERT_EQ(copy(store.target(i)), (Tokens{i + 1, i + 2}));
  }
}

TEST(PairStore, DoesNotExistBeforeCommit) {
  const TemporaryFolder folder;
  {
    PairWriter writer(folder / "pairs", kKey);
    writer.add(Tokens{5, 2, 6}, 2);
    EXPECT_FALSE(fs::exists(folder / "pairs"));
  }
  EXPECT_TRUE(folder.empty());
}

TEST(PairStore, TruncatedAndExtendedFilesAreRefused) {
  const TemporaryFolder folder;
  write_pairs(folder / "pairs", kPairs);
  const std::string whole = content(folder / "pairs");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(says(error_of([&] { parse(whole.substr(0, size)); }), "f is not a valid file"))
        << size;
  }
  EXPECT_TRUE(says(error_of([&] { parse(whole + std::string(8, '\0')); }), "not a valid file"));
  write_text(folder / "empty", "");
  EXPECT_TRUE(says(error_of([&] { PairStore::open(folder / "empty"); }), "is not a valid file"));
}

// Whichever byte is wrong, the file is refused or its tokens do not match their digest.
TEST(PairStore, DetectsEveryWrongByte) {
  const TemporaryFolder folder;
  write_pairs(folder / "pairs", kPairs);
  const std::string whole = content(folder / "pairs");
  constexpr std::size_t kTokensBegin = 64, kTokensEnd = 64 + 4 * 15;
  for (std::size_t position = 0; position < whole.size(); ++position) {
    // The four padding bytes after an odd number of tokens are not checked.
    if (position >= kTokensEnd && position < kTokensEnd + 4) continue;
    std::string wrong = whole;
    wrong[position] = static_cast<char>(wrong[position] ^ 0x41);
    if (position >= kTokensBegin && position < kTokensEnd) {
      EXPECT_FALSE(parse(wrong).tokens_are_intact()) << position;
    } else {
      try {
        EXPECT_FALSE(parse(wrong).tokens_are_intact()) << position;
      } catch (const Error&) {
      }
    }
  }
}

// The digest is updated, so that the later checks are reached: whatever the index and the footer
// contain, no read leaves the file.
TEST(PairStore, TrustsNoNumberInTheFile) {
  const TemporaryFolder folder;
  write_pairs(folder / "pairs", kPairs);
  const std::string whole = content(folder / "pairs");
  constexpr std::size_t kIndex = 128, kDigestBytes = 16;
  const std::size_t checked_end = whole.size() - kDigestBytes;
  int refused = 0, accepted = 0;
  for (std::size_t position = kIndex; position < checked_end; position += 4) {
    for (const std::uint32_t value : {0u, 1u, 2u, 16u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu}) {
      std::string wrong = whole;
      std::memcpy(wrong.data() + position, &value, sizeof value);
      const std::string_view index = std::string_view(wrong).substr(kIndex, checked_end - kIndex);
      const Digest digest = ContentHash().update(testing::bytes(index)).digest();
      std::memcpy(wrong.data() + checked_end, &digest, sizeof digest);
      try {
        const PairStore store = parse(wrong);
        ++accepted;
        for (std::int64_t pair = 0; pair < store.size(); ++pair) {
          // Reading outside of the file throws Error, which counts as an unexpected one here.
          ASSERT_NO_THROW(ASSERT_FALSE(store.source(pair).empty()));
          ASSERT_NO_THROW(ASSERT_FALSE(store.target(pair).empty()));
        }
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(accepted, 10);  // changes of the key, and values that are equal to the right ones
}

TEST(PairStore, FuzzSeedsAreAcceptedOrRefusedAsNamed) {
  const fs::path corpus = fs::path(NUNCHI_SOURCE_DIR) / "tests/fuzz/corpus/pair_store";
  int seeds = 0;
  for (const fs::directory_entry& seed : fs::directory_iterator(corpus)) {
    const bool valid = seed.path().filename().string().starts_with("valid-");
    const std::string message = error_of([&] { parse(content(seed.path())); });
    EXPECT_EQ(message == "no error", valid) << seed.path() << ": " << message;
    ++seeds;
  }
  EXPECT_GE(seeds, 15);
}

// A limit on file sizes simulates a full disk: writing fails in the middle of the data.
TEST(PairStore, AFullDiskIsAnErrorAndLeavesNoFile) {
  const TemporaryFolder folder;
  rlimit previous_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &previous_limit), 0);
  const auto previous_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{128, previous_limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = error_of([&] { write_pairs(folder / "pairs", kPairs); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &previous_limit), 0);
  std::signal(SIGXFSZ, previous_handler);
  EXPECT_TRUE(says(message, "pairs: File too large")) << message;
  EXPECT_TRUE(folder.empty());
}

TEST(PairReport, ReadsAsASentence) {
  EXPECT_EQ(to_text(PairReport{}), "0 lines: 0 pairs kept");
  EXPECT_EQ(to_text({.lines = 1, .kept = 1}), "1 line: 1 pair kept");
  EXPECT_EQ(to_text({.lines = 29'000,
                     .kept = 28'980,
                     .cut = 1,
                     .empty = 3,
                     .too_long = 7,
                     .unequal_lengths = 9,
                     .repaired = 2}),
            "29,000 lines: 28,980 pairs kept, 20 left out (3 empty, 7 too long, 9 of too unequal "
            "lengths, 1 over 1 MiB); 2 had invalid UTF-8, replaced by U+FFFD");
}

}  // namespace
}  // namespace nunchi
