// Features in the data layer: from a folder of files to the cache and batches.
#include <gtest/gtest.h>

#include <set>

#include "nunchi/data/batch_queue.h"
#include "nunchi/data/prepare.h"
#include "tests/data/npy_files.h"
#include "tests/data/word_tokenizer.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace nunchi::testing {
namespace {

// Example i has 1 + i rows and two columns; all its values are i.
Features example(std::int64_t i) {
  return {
      .width = 2,
      .values = std::vector<float>(static_cast<std::size_t>(2 * (1 + i)), static_cast<float>(i))};
}

class FeatureCorpus : public ::testing::Test {
 protected:
  FeatureCorpus() {
    std::filesystem::create_directory(part_.features);
    std::string lines;
    for (std::int64_t i = 0; i < kExamples; ++i) {
      write_npy(part_.features / (std::string(1, static_cast<char>('a' + i)) + ".npy"), example(i));
      lines += "line " + std::to_string(i) + "\n";
    }
    write_text(part_.target, lines);
    write_text(part_.features / "readme.txt", "not a file of features");
  }
  PairStore prepared() { return prepare_pairs(part_, {tokenizer_, tokenizer_}, options_); }

  static constexpr std::int64_t kExamples = 7;
  TemporaryFolder folder_;
  CorpusPart part_{.features = folder_ / "features", .target = folder_ / "train.txt"};
  WordTokenizer tokenizer_;
  PrepareOptions options_{.cache = folder_ / "cache", .threads = 2};
};

TEST_F(FeatureCorpus, FeatureFilesInNameOrderCorrespondToTheTargetLines) {
  const PairStore store = prepared();
  ASSERT_EQ(store.size(), kExamples);
  ASSERT_NE(store.features(), nullptr);
  EXPECT_TRUE(store.has_sources());
  for (std::int64_t i = 0; i < kExamples; ++i) {
    EXPECT_EQ(store.source_length(i), 1 + i);
    EXPECT_TRUE(store.source(i).empty());
    const auto values = store.features()->values(i);
    EXPECT_EQ(std::vector<float>(values.begin(), values.end()), example(i).values);
    const auto target = store.target(i);
    EXPECT_EQ(Tokens(target.begin(), target.end()),
              WordTokenizer::tokens_of("line " + std::to_string(i)));
  }
}

TEST_F(FeatureCorpus, TheCacheIsUsedUntilAFileChanges) {
  prepared();
  const std::int64_t calls = tokenizer_.call_count();
  prepared();
  EXPECT_EQ(tokenizer_.call_count(), calls);
  write_npy(part_.features / "c.npy", example(5));
  EXPECT_EQ(prepared().source_length(2), 6);
  EXPECT_GT(tokenizer_.call_count(), calls);
}

TEST_F(FeatureCorpus, ADamagedCacheIsWrittenAgain) {
  prepared();
  for (const auto& entry : std::filesystem::directory_iterator(options_.cache)) {
    if (!entry.path().filename().string().starts_with("features-")) continue;
    std::string damaged = content(entry.path());
    damaged[70] = static_cast<char>(damaged[70] ^ 1);
    write_text(entry.path(), damaged);
  }
  EXPECT_TRUE(prepared().features()->values_are_intact());
}

TEST_F(FeatureCorpus, FeaturesOfSkippedLinesAreSkipped) {
  write_text(part_.target, "a\n\nb\nc d e f\ng\nh\ni\n");
  options_.limits.max_length = 3;
  const PairStore store = prepared();
  EXPECT_EQ(store.report().empty, 1);
  EXPECT_EQ(store.report().too_long, 1);
  ASSERT_EQ(store.size(), 5);
  EXPECT_EQ(store.features()->values(1).front(), 2);
  EXPECT_EQ(store.features()->values(2).front(), 4);
}

TEST_F(FeatureCorpus, BatchesContainFeaturesAndLimitTheirRows) {
  const PairStore store = prepared();
  const BatchOrder order({{&store, 1}}, {.batch_tokens = 100, .source_tokens = 9});
  BatchQueue queue(order);
  std::set<float> seen;
  for (std::int64_t remaining = kExamples; remaining > 0;) {
    const HostBatch batch = queue.next();
    const auto& features = std::get<std::vector<Features>>(batch.sources);
    ASSERT_EQ(features.size(), batch.targets.size());
    std::int64_t rows = 0;
    for (std::size_t i = 0; i < features.size(); ++i) {
      EXPECT_EQ(features[i].values, example(batch.pairs[i]).values);
      rows += features[i].rows();
      seen.insert(features[i].values.front());
    }
    EXPECT_TRUE(rows <= 9 || features.size() == 1) << rows;
    remaining -= std::ssize(features);
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kExamples));
}

TEST_F(FeatureCorpus, PartsWithDifferentSourcesAreRefused) {
  const PairStore store = prepared();
  write_text(folder_ / "source.txt", "x\n");
  write_text(folder_ / "target.txt", "y\n");
  const PairStore text =
      prepare_pairs(CorpusPart{.source = folder_ / "source.txt", .target = folder_ / "target.txt"},
                    {tokenizer_, tokenizer_}, options_);
  EXPECT_TRUE(says(error_of([&] {
                     BatchOrder({{&store, 1}, {&text, 1}}, {});
                   }),
                   "the same kind of source"));
}

TEST_F(FeatureCorpus, InconsistentFilesAreRefused) {
  write_text(part_.target, "one\ntwo\n");
  EXPECT_TRUE(says(error_of([&] { prepared(); }), "has 2 lines but"));
  write_text(part_.target, "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  EXPECT_TRUE(says(error_of([&] { prepared(); }), "has 7 files of features"));
  write_text(part_.target, "1\n2\n3\n4\n5\n6\n7\n");
  write_npy(part_.features / "c.npy", {.width = 3, .values = {1, 2, 3}});
  EXPECT_TRUE(says(error_of([&] { prepared(); }), "2 and 3 columns"));
  part_.source = folder_ / "train.txt";
  EXPECT_TRUE(says(error_of([&] { prepared(); }), "must have a target, and no source"));
  part_ = {.features = folder_ / "cache", .target = folder_ / "train.txt"};
  std::filesystem::create_directories(part_.features);
  EXPECT_TRUE(says(error_of([&] { prepared(); }), "contains no .npy files"));
}

}  // namespace
}  // namespace nunchi::testing
