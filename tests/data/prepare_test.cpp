#include "nunchi/data/prepare.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/data/archives.h"
#include "tests/data/word_tokenizer.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace nunchi {
namespace {

namespace fs = std::filesystem;
using testing::content;
using testing::error_of;
using testing::gzipped;
using testing::says;
using testing::TemporaryFolder;
using testing::WordTokenizer;
using testing::write_text;

Tokens copy(std::span<const std::int32_t> tokens) { return {tokens.begin(), tokens.end()}; }

Tokens with_end(Tokens tokens) {
  tokens.push_back(kUsualSpecialTokens.end);
  return tokens;
}

// Each test has its own corpus and cache folder.
class Prepare : public ::testing::Test {
 protected:
  void write(std::string_view source, std::string_view target) {
    write_text(folder / "train.en", source);
    write_text(folder / "train.de", target);
  }

  PairStore prepare() { return prepare_pairs(part, {english, german}, options); }

  // The number of texts that are tokenised during the call.
  template <class Call>
  std::int64_t tokenized(Call call) {
    const std::int64_t before = english.call_count() + german.call_count();
    call();
    return english.call_count() + german.call_count() - before;
  }

  std::vector<fs::path> cached() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(options.cache)) files.push_back(entry.path());
    return files;
  }

  TemporaryFolder folder;
  CorpusPart part{.source = folder / "train.en", .target = folder / "train.de"};
  PrepareOptions options{.cache = folder / "a/cache"};
  WordTokenizer english{1}, german{2};
};

TEST_F(Prepare, TokenisesBothSides) {
  write("a dog\ntwo red birds\n", "ein Hund\nzwei rote Vögel\n");
  const PairStore store = prepare();
  ASSERT_EQ(store.size(), 2);
  EXPECT_EQ(copy(store.source(0)), with_end(WordTokenizer::tokens_of("a dog")));
  EXPECT_EQ(copy(store.target(0)), WordTokenizer::tokens_of("ein Hund"));
  EXPECT_EQ(copy(store.source(1)), with_end(WordTokenizer::tokens_of("two red birds")));
  EXPECT_EQ(copy(store.target(1)), WordTokenizer::tokens_of("zwei rote Vögel"));
  EXPECT_EQ(store.report(), (PairReport{.lines = 2, .kept = 2}));
}

TEST_F(Prepare, AnEmptyCorpusGivesAnEmptyStore) {
  write("", "");
  EXPECT_EQ(prepare().size(), 0);
  EXPECT_EQ(prepare().report(), PairReport{});
}

TEST_F(Prepare, EveryLineIsKeptOrCounted) {
  const std::string long_line(std::size_t{2} << 20, 'x');
  const std::vector<std::pair<std::string, std::string>> lines{
      {"a b c", "x"},         // fits: three tokens and </s>
      {"a b c d", "y y"},     // too long
      {"a", "a b c d e f"},   // too long on the other side
      {"", "x"},              // empty
      {"a", "   "},           // blank
      {"a", "x y z"},         // three times as many
      {"a", "x y"},           // twice as many
      {"a \xFF b", "x y z"},  // kept, repaired
      {long_line, "x"},       // cut
      {"\xFF", "a b c d"},    // too long: not counted as repaired
  };
  std::string source, target;
  for (const auto& [left, right] : lines) {
    source += left + "\n";
    target += right + "\n";
  }
  write(source, target);

  options.limits = {.max_length = 4, .max_ratio = 2};
  EXPECT_EQ(prepare().report(), (PairReport{.lines = 10,
                                            .kept = 2,
                                            .cut = 1,
                                            .empty = 2,
                                            .too_long = 3,
                                            .unequal_lengths = 2,
                                            .repaired = 1}));
  options.limits = {.max_length = 4, .max_ratio = 0};
  EXPECT_EQ(
      prepare().report(),
      (PairReport{.lines = 10, .kept = 4, .cut = 1, .empty = 2, .too_long = 3, .repaired = 1}));
  options.limits = {.max_length = 0};
  EXPECT_EQ(prepare().report(),
            (PairReport{.lines = 10, .kept = 7, .cut = 1, .empty = 2, .repaired = 2}));
}

TEST_F(Prepare, TheNextRunUsesTheCache) {
  write("a dog\n", "ein Hund\n");
  EXPECT_EQ(tokenized([&] { prepare(); }), 2);
  EXPECT_EQ(tokenized([&] { EXPECT_EQ(prepare().size(), 1); }), 0);
  EXPECT_EQ(cached().size(), 1u);
}

TEST_F(Prepare, OnlyOptionsThatAffectThePairsInvalidateTheCache) {
  write("a dog\n", "ein Hund\n");
  prepare();
  part.weight = 2;
  options.threads = 3;
  EXPECT_EQ(tokenized([&] { prepare(); }), 0);
  options.limits.max_length = 100;
  EXPECT_EQ(tokenized([&] { prepare(); }), 2);
  options.limits.max_ratio = 3;
  EXPECT_EQ(tokenized([&] { prepare(); }), 2);
  const WordTokenizer other(3);
  prepare_pairs(part, {other, german}, options);
  EXPECT_EQ(other.call_count(), 1);
  prepare_pairs(part, {english, other}, options);
  EXPECT_EQ(other.call_count(), 2);
  EXPECT_EQ(cached().size(), 5u);
}

// The file keeps its size and time, but its bytes change.
TEST_F(Prepare, AChangedFileInvalidatesTheCache) {
  write("a dog\n", "ein Hund\n");
  prepare();
  const auto time = fs::last_write_time(folder / "train.en");
  write_text(folder / "train.en", "a hog\n");
  fs::last_write_time(folder / "train.en", time);
  const PairStore store = prepare();
  EXPECT_EQ(copy(store.source(0)), with_end(WordTokenizer::tokens_of("a hog")));
}

TEST_F(Prepare, SwappedFilesAreAnotherCorpus) {
  write("a dog\n", "ein Hund\n");
  prepare();
  std::swap(part.source, part.target);
  EXPECT_EQ(copy(prepare().target(0)), WordTokenizer::tokens_of("a dog"));
}

TEST_F(Prepare, OtherColumnsAreAnotherCorpus) {
  write_text(folder / "pairs.tsv", "one\teins\tun\n");
  part = {.tsv = folder / "pairs.tsv"};
  EXPECT_EQ(copy(prepare().target(0)), WordTokenizer::tokens_of("eins"));
  part.target_column = 3;
  EXPECT_EQ(copy(prepare().target(0)), WordTokenizer::tokens_of("un"));
  part = {.tsv = folder / "pairs.tsv", .source_column = 2, .target_column = 1};
  EXPECT_EQ(copy(prepare().source(0)), with_end(WordTokenizer::tokens_of("eins")));
}

TEST_F(Prepare, ADamagedCacheFileIsWrittenAgain) {
  write("a dog\ntwo birds\n", "ein Hund\nzwei Vögel\n");
  prepare();
  const fs::path file = cached().front();
  const std::string whole = content(file);
  std::string wrong_token = whole, wrong_footer = whole;
  wrong_token[70] ^= 1;
  wrong_footer[whole.size() - 40] ^= 1;
  for (const std::string& damaged :
       {whole.substr(0, whole.size() / 2), std::string(), wrong_token, wrong_footer}) {
    write_text(file, damaged);
    EXPECT_EQ(tokenized([&] { EXPECT_EQ(prepare().size(), 2); }), 4);
    EXPECT_EQ(content(file), whole);
  }
}

// The cache file of another corpus has this name.
TEST_F(Prepare, ACacheFileWithAnotherKeyIsWrittenAgain) {
  write("a dog\n", "ein Hund\n");
  prepare();
  const fs::path first = cached().front();
  write("two birds\n", "zwei Vögel\n");
  prepare();
  const auto files = cached();
  const fs::path second = files[0] == first ? files[1] : files[0];
  fs::copy_file(first, second, fs::copy_options::overwrite_existing);
  EXPECT_EQ(copy(prepare().source(0)), with_end(WordTokenizer::tokens_of("two birds")));
}

TEST_F(Prepare, FilesDoNotDependOnTheNumberOfThreads) {
  std::string source, target;
  for (int i = 0; i < 20'000; ++i) {
    source += "source " + std::to_string(i * 7919 % 1'000) + (i % 3 == 0 ? " more\n" : "\n");
    target += i % 17 == 0 ? "\n" : "target " + std::to_string(i * 104'729 % 1'000) + "\n";
  }
  write(gzipped(source), target);
  std::vector<std::string> files;
  for (const int threads : {1, 2, 5}) {
    options.threads = threads;
    options.cache = folder / ("cache" + std::to_string(threads));
    const PairStore store = prepare();
    EXPECT_EQ(store.report().lines, 20'000);
    EXPECT_EQ(store.report().empty, 1'177);
    files.push_back(content(cached().front()));
  }
  EXPECT_EQ(files[0], files[1]);
  EXPECT_EQ(files[0], files[2]);
}

TEST_F(Prepare, ProgressGoesFromReadingToTheLastLine) {
  std::string text;
  for (int i = 0; i < 5'000; ++i) text += "line\n";
  write(text, text);
  std::vector<PrepareProgress> seen;
  options.progress = [&](const PrepareProgress& progress) { seen.push_back(progress); };
  prepare();
  ASSERT_GE(seen.size(), 4u);
  EXPECT_EQ(seen.front().stage, PrepareProgress::Stage::reading);
  EXPECT_EQ(seen.back().stage, PrepareProgress::Stage::tokenizing);
  EXPECT_EQ(seen.back().lines, 5'000);
  EXPECT_EQ(seen.back().fraction, 1.0);
  for (const PrepareProgress& progress : seen) {
    EXPECT_GE(progress.fraction, 0.0);
    EXPECT_LE(progress.fraction, 1.0);
  }
}

TEST_F(Prepare, AnExceptionOfProgressStopsTheWork) {
  write("a dog\n", "ein Hund\n");
  options.progress = [](const PrepareProgress& progress) {
    if (progress.stage == PrepareProgress::Stage::tokenizing) throw std::runtime_error("enough");
  };
  EXPECT_THROW(prepare(), std::runtime_error);
  EXPECT_TRUE(cached().empty());
  options.progress = [](const PrepareProgress&) { throw Error("enough"); };
  EXPECT_EQ(error_of([&] { prepare(); }), "enough");
}

TEST_F(Prepare, AnExceptionOfATokenizerIsPassedOn) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) {
    text += i == 6'000 ? "a text that no tokenizer likes\n" : "line\n";
  }
  write(text, text);
  options.threads = 3;
  EXPECT_EQ(error_of([&] { prepare(); }), "the tokenizer failed");
  EXPECT_TRUE(cached().empty());
}

TEST_F(Prepare, UnequalLineCountsLeaveNoFile) {
  write("a\nb\n", "c\n");
  EXPECT_TRUE(says(error_of([&] { prepare(); }), "has 1 line but"));
  EXPECT_TRUE(cached().empty());
}

TEST_F(Prepare, AFileThatChangesWhileItIsReadIsAnError) {
  write("a dog\n", "ein Hund\n");
  options.progress = [&](const PrepareProgress& progress) {
    if (progress.stage == PrepareProgress::Stage::tokenizing) {
      write_text(folder / "train.de", "ein Hund mehr\n");
    }
  };
  EXPECT_TRUE(says(error_of([&] { prepare(); }), "train.de changed while it was read"));
  EXPECT_TRUE(cached().empty());
}

TEST_F(Prepare, FilesThatCannotBeReadTwiceAreNamed) {
  write("a\n", "b\n");
  part.target = folder / "none";
  EXPECT_TRUE(says(error_of([&] { prepare(); }), "none: No such file or directory"));
  part.target = folder.path();
  EXPECT_TRUE(says(error_of([&] { prepare(); }), "it is a folder"));
  part.target = "/dev/null";
  EXPECT_TRUE(says(error_of([&] { prepare(); }), "not a plain file"));
}

TEST_F(Prepare, ACacheFolderThatCannotBeCreatedIsAnError) {
  write("a\n", "b\n");
  write_text(folder / "file", "in the way");
  options.cache = folder / "file/cache";
  EXPECT_TRUE(says(error_of([&] { prepare(); }), "cannot make the folder"));
}

TEST_F(Prepare, AReadOnlyCacheIsReadAndNotWritten) {
  constexpr uid_t kNobody = 65534;
  write("a\n", "b\n");
  prepare();
  fs::permissions(folder.path(), fs::perms(0755));
  fs::permissions(options.cache, fs::perms(0555));
  // Root may ignore permission bits.
  const uid_t user = ::geteuid();
  if (user == 0 && ::seteuid(kNobody) != 0) GTEST_SKIP() << "cannot stop being root";
  std::int64_t pairs = 0;
  const std::string hit = error_of([&] { pairs = prepare().size(); });
  options.limits.max_length = 9;
  const std::string miss = error_of([&] { prepare(); });
  ASSERT_EQ(::seteuid(user), 0);
  fs::permissions(options.cache, fs::perms(0755));
  EXPECT_EQ(hit, "no error");
  EXPECT_EQ(pairs, 1);
  EXPECT_TRUE(says(miss, "Permission denied")) << miss;
}

TEST_F(Prepare, InvalidOptionsAreRefused) {
  write("a\n", "b\n");
  const auto refused = [&](const PairLimits& limits) {
    options.limits = limits;
    EXPECT_THROW(prepare(), UsageError);
  };
  refused({.max_length = -1});
  refused({.max_ratio = 0.5});
  refused({.max_ratio = -2});
  refused({.max_ratio = std::numeric_limits<double>::quiet_NaN()});
  options = {};
  EXPECT_THROW(prepare(), UsageError);
}

TEST_F(Prepare, EachPartGetsAStore) {
  write("a dog\n", "ein Hund\n");
  write_text(folder / "pairs.tsv", "one\teins\ntwo\tzwei\n");
  const std::vector<CorpusPart> parts{part, {.tsv = folder / "pairs.tsv"}};
  const std::vector<PairStore> stores = prepare_pairs(parts, {english, german}, options);
  ASSERT_EQ(stores.size(), 2u);
  EXPECT_EQ(stores[0].size(), 1);
  EXPECT_EQ(stores[1].size(), 2);
}

}  // namespace
}  // namespace nunchi
