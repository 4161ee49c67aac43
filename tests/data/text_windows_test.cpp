// Texts without a source: lines, and windows of one long text.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "nunchi/data/batch_queue.h"
#include "nunchi/data/prepare.h"
#include "tests/data/archives.h"
#include "tests/data/stores.h"
#include "tests/data/word_tokenizer.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace nunchi::testing {
namespace {

Tokens copy(std::span<const std::int32_t> tokens) { return {tokens.begin(), tokens.end()}; }

// A store with one text, the tokens 0, 1, 2, …
PairStore counting_store(const std::filesystem::path& path, std::int32_t tokens) {
  PairWriter writer(path, {9, static_cast<std::uint64_t>(tokens)});
  Tokens text;
  for (std::int32_t t = 0; t < tokens; ++t) text.push_back(t);
  if (tokens > 0) writer.add(text, 0);
  writer.commit({.lines = tokens > 0, .kept = tokens > 0});
  return PairStore::open(path);
}

BatchOrder windows_of(const PairStore& store, std::int64_t window, double weight = 1) {
  return BatchOrder({{&store, weight}}, {.batch_tokens = 60, .text_window = window});
}

struct Window {
  std::int32_t begin;
  std::size_t tokens;
  auto operator<=>(const Window&) const = default;
};

// The windows of an epoch, sorted by first token. Checks that each is a contiguous part of the
// text.
std::vector<Window> windows_in(const BatchOrder& order, std::int64_t epoch) {
  std::vector<Window> windows;
  const EpochBatches batches = order.epoch(epoch);
  for (std::int64_t b = 0; b < batches.size(); ++b) {
    std::int64_t predicted = 0;
    for (const std::uint32_t pair : batches.batch(b)) {
      Tokens buffer;
      const auto [source, tokens] = order.read(pair, buffer);
      for (std::size_t i = 1; i < tokens.size(); ++i) EXPECT_EQ(tokens[i], tokens[i - 1] + 1);
      EXPECT_TRUE(source.empty());
      EXPECT_EQ(order.target_tokens(pair), static_cast<std::int64_t>(tokens.size()) - 1);
      windows.push_back({tokens.front(), tokens.size()});
      predicted += order.target_tokens(pair);
    }
    EXPECT_LE(predicted, 60);
  }
  std::ranges::sort(windows);
  return windows;
}

TEST(TextWindows, EveryTokenIsPredictedOncePerEpoch) {
  const TemporaryFolder folder;
  for (const std::int32_t tokens : {2, 3, 9, 10, 11, 12, 18, 19, 20, 21, 100, 101, 107}) {
    const PairStore store = counting_store(folder / "text", tokens);
    for (const std::int64_t window : {1, 2, 10}) {
      const BatchOrder order = windows_of(store, window);
      for (const std::int64_t epoch : {0, 1, 2, 77}) {
        std::int32_t next = 0;
        for (const Window& one : windows_in(order, epoch)) {
          EXPECT_EQ(one.begin, next) << tokens << " tokens, window " << window;
          EXPECT_GE(one.tokens, 2u);
          EXPECT_LE(one.tokens, static_cast<std::size_t>(window) + 1);
          next = one.begin + static_cast<std::int32_t>(one.tokens) - 1;
        }
        EXPECT_EQ(next, tokens - 1);
        EXPECT_EQ(static_cast<std::int64_t>(windows_in(order, epoch).size()), order.epoch_pairs());
      }
    }
  }
}

TEST(TextWindows, EachEpochCutsTheTextAtOtherPositions) {
  const TemporaryFolder folder;
  for (const std::int32_t tokens : {500, 501, 525, 549, 550}) {
    const PairStore store = counting_store(folder / "text", tokens);
    const BatchOrder order = windows_of(store, 50);
    std::set<std::int32_t> cuts;
    for (std::int64_t epoch = 0; epoch < 20; ++epoch)
      cuts.insert(windows_in(order, epoch)[1].begin);
    EXPECT_GE(cuts.size(), 8u) << tokens;
    EXPECT_EQ(windows_in(order, 3), windows_in(windows_of(store, 50), 3));
  }
}

TEST(TextWindows, WeightsApplyToWindows) {
  const TemporaryFolder folder;
  const PairStore store = counting_store(folder / "text", 992);
  const std::int64_t pairs_with_weight_1 = windows_of(store, 10).epoch_pairs();
  EXPECT_EQ(windows_of(store, 10, 2).epoch_pairs(), 2 * pairs_with_weight_1);
  // Two epochs with weight 0.5 cover the text once.
  const BatchOrder half = windows_of(store, 10, 0.5);
  std::vector<Window> two_epochs = windows_in(half, 0);
  for (const Window& one : windows_in(half, 1)) two_epochs.push_back(one);
  std::ranges::sort(two_epochs);
  std::int64_t predicted = 0;
  for (const Window& one : two_epochs) predicted += static_cast<std::int64_t>(one.tokens) - 1;
  EXPECT_EQ(predicted, 991);
}

TEST(TextWindows, ATextWithoutTokensToPredictHasNoWindows) {
  const TemporaryFolder folder;
  EXPECT_EQ(windows_of(counting_store(folder / "none", 0), 10).epoch_pairs(), 0);
  EXPECT_EQ(windows_of(counting_store(folder / "one", 1), 10).epoch_pairs(), 0);
}

TEST(TextWindows, PairsCannotBeCutIntoWindows) {
  const TemporaryFolder folder;
  const PairStore pairs = random_store(folder / "pairs", 5);
  EXPECT_TRUE(says(error_of([&] { windows_of(pairs, 10); }), "cannot be cut into windows"));
  EXPECT_TRUE(says(error_of([&] { windows_of(pairs, -1); }), "from 1 to 2^24 tokens"));
}

TEST(TextWindows, TheQueueReturnsWindows) {
  const TemporaryFolder folder;
  const PairStore store = counting_store(folder / "text", 200);
  const BatchOrder order = windows_of(store, 10);
  BatchQueue queue(order);
  const HostBatch batch = queue.next();
  std::int64_t predicted = 0;
  for (const Tokens& target : batch.targets)
    predicted += static_cast<std::int64_t>(target.size()) - 1;
  EXPECT_EQ(batch.target_tokens, predicted);
  EXPECT_EQ(example_count(batch.sources), batch.targets.size());
}

class PrepareText : public ::testing::Test {
 protected:
  PairStore prepare(TextCut cut, std::int64_t max_length = 0) {
    return prepare_pairs(part, {words, words},
                         {.limits = {.max_length = max_length}, .cut = cut, .cache = folder / "c"});
  }

  TemporaryFolder folder;
  CorpusPart part{.text = folder / "a.txt"};
  WordTokenizer words;
};

TEST_F(PrepareText, LinesAreExamples) {
  write_text(folder / "a.txt", "a dog\n\none two three four\n\xFFx\n");
  const PairStore store = prepare(TextCut::lines, 4);
  ASSERT_EQ(store.size(), 2);
  EXPECT_FALSE(store.has_sources());
  EXPECT_TRUE(store.source(0).empty());
  EXPECT_EQ(copy(store.target(0)), WordTokenizer::tokens_of("a dog"));
  EXPECT_EQ(to_text(store.report(), kind_of_line(part)),
            "4 lines: 2 lines kept, 2 left out (1 empty, 1 too long); 1 had invalid UTF-8, "
            "replaced by U+FFFD");
}

TEST_F(PrepareText, WindowsContainAllLinesAndLineEnds) {
  write_text(folder / "a.txt", gzipped("a dog\n\none two three four\n"));
  const PairStore store = prepare(TextCut::windows, 4);
  Tokens expected = WordTokenizer::tokens_of("a dog");
  expected.push_back(words.line_end());
  expected.push_back(words.line_end());
  for (const std::int32_t token : WordTokenizer::tokens_of("one two three four")) {
    expected.push_back(token);
  }
  expected.push_back(words.line_end());
  Tokens text(static_cast<std::size_t>(store.token_count()));
  store.read_text(0, text);
  EXPECT_EQ(text, expected);
  EXPECT_NE(store.key(), prepare(TextCut::lines, 4).key());
}

TEST_F(PrepareText, OnlyTheRequestedLinesAreUsed) {
  write_text(folder / "a.txt", "one\ntwo\nthree\nfour\n");
  part.first_line = 2;
  part.last_line = 3;
  const PairStore some = prepare(TextCut::lines);
  ASSERT_EQ(some.size(), 2);
  EXPECT_EQ(copy(some.target(0)), WordTokenizer::tokens_of("two"));
  EXPECT_EQ(copy(some.target(1)), WordTokenizer::tokens_of("three"));
  part.last_line = 0;
  EXPECT_EQ(prepare(TextCut::lines).size(), 3);
  part.first_line = 9;
  EXPECT_TRUE(says(error_of([&] { prepare(TextCut::lines); }),
                   "a.txt has 4 lines, but 'first_line' is 9."));
}

TEST_F(PrepareText, ATextWithAnotherFileIsRefused) {
  part.source = "x";
  EXPECT_TRUE(says(error_of([&] { files_of(part); }), "either a text or pairs"));
}

}  // namespace
}  // namespace nunchi::testing
