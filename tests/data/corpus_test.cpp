#include "nunchi/data/corpus.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/data/archives.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace nunchi {
namespace {

using testing::error_of;
using testing::gzipped;
using testing::says;
using testing::TemporaryFolder;
using testing::write_text;
using testing::xz_packed;
using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs pairs_of(const CorpusPart& part) {
  PairReader reader(part);
  Pairs pairs;
  for (RawPair pair; reader.next(pair);) pairs.emplace_back(pair.source, pair.target);
  return pairs;
}

// Two parallel files in a temporary folder.
struct TwoFiles {
  TwoFiles(std::string_view source, std::string_view target) {
    write_text(folder / "train.en", source);
    write_text(folder / "train.de", target);
  }
  CorpusPart part() const { return {.source = folder / "train.en", .target = folder / "train.de"}; }
  std::string english() const { return (folder / "train.en").string(); }
  std::string german() const { return (folder / "train.de").string(); }

  TemporaryFolder folder;
};

struct OneTsv {
  explicit OneTsv(std::string_view text) { write_text(folder / "pairs.tsv", text); }
  CorpusPart part(int source_column, int target_column) const {
    return {.tsv = folder / "pairs.tsv",
            .source_column = source_column,
            .target_column = target_column};
  }

  TemporaryFolder folder;
};

TEST(Corpus, LinesOfTwoFilesArePaired) {
  const TwoFiles files(gzipped("a dog\r\n\r\ntwo\n"), xz_packed("ein Hund\n\nzwei"));
  EXPECT_EQ(pairs_of(files.part()), (Pairs{{"a dog", "ein Hund"}, {"", ""}, {"two", "zwei"}}));
}

TEST(Corpus, MayBeEmpty) {
  EXPECT_EQ(pairs_of(TwoFiles("", "").part()), Pairs{});
  EXPECT_EQ(pairs_of(OneTsv("").part(1, 2)), Pairs{});
}

TEST(Corpus, CountsLinesAndBytes) {
  const TwoFiles files("a\nb\n", "c\nd\n");
  PairReader reader(files.part());
  RawPair pair;
  EXPECT_EQ(reader.line_number(), 0);
  while (reader.next(pair)) {
  }
  EXPECT_EQ(reader.line_number(), 2);
  EXPECT_EQ(reader.consumed(), 8);
}

TEST(Corpus, UnequalLineCountsAreAnErrorWithBothCountsAndTheLikelyLine) {
  std::string english, german;
  for (int i = 1; i <= 1'500; ++i) {
    english += "line\n";
    german += i == 1'205 ? "\n" : "Zeile\n";
  }
  const TwoFiles files(english + "one more\n", german);
  EXPECT_EQ(error_of([&] { pairs_of(files.part()); }),
            files.german() + " has 1,500 lines but " + files.english() +
                " has 1,501. A pair needs one line on each side; the first difference is after "
                "line 1,204 (an empty line in " +
                files.german() + "?).");
}

TEST(Corpus, UnequalLineCountsWithoutAnEmptyLineAreAnError) {
  const TwoFiles files("a\nb\n", "c\nd\ne\nf\n");
  EXPECT_EQ(error_of([&] { pairs_of(files.part()); }),
            files.german() + " has 4 lines but " + files.english() +
                " has 2. A pair needs one line on each side; look for a line that was split, "
                "joined or lost.");
  EXPECT_TRUE(says(error_of([] { pairs_of(TwoFiles("", "c\n").part()); }), "has 1 line but"));
  EXPECT_TRUE(says(error_of([] { pairs_of(TwoFiles("\na\n", "c\n").part()); }),
                   "the first difference is line 1 (an empty line in "));
}

TEST(Corpus, ALineThatIsTooLongMarksThePair) {
  const std::string megabytes(std::size_t{2} << 20, 'x');
  const TwoFiles files("a\nb\n", "c\n" + megabytes + "\n");
  PairReader reader(files.part());
  RawPair pair;
  ASSERT_TRUE(reader.next(pair));
  EXPECT_FALSE(pair.cut);
  ASSERT_TRUE(reader.next(pair));
  EXPECT_TRUE(pair.cut);
  const OneTsv tsv(megabytes + "\nc\td\n");
  PairReader columns(tsv.part(1, 2));
  ASSERT_TRUE(columns.next(pair));
  EXPECT_TRUE(pair.cut);
  ASSERT_TRUE(columns.next(pair));
  EXPECT_FALSE(pair.cut);
  EXPECT_EQ(pair.target, "d");
}

TEST(Corpus, ATsvReturnsTheRequestedColumns) {
  const OneTsv tsv("1\tone\teins\n2\ttwo\tzwei\tmore\r\n3\t\tdrei\r\n\n4\tfour\t");
  EXPECT_EQ(pairs_of(tsv.part(2, 3)),
            (Pairs{{"one", "eins"}, {"two", "zwei"}, {"", "drei"}, {"", ""}, {"four", ""}}));
  EXPECT_EQ(pairs_of(tsv.part(3, 1)).front(), (std::pair<std::string, std::string>("eins", "1")));
}

TEST(Corpus, ATsvLineWithTooFewColumnsIsAnErrorWithItsLineNumber) {
  const OneTsv tsv("a\tb\tc\nd\te\n");
  EXPECT_EQ(error_of([&] { pairs_of(tsv.part(1, 3)); }),
            (tsv.folder / "pairs.tsv").string() +
                ":2: 2 columns, but column 3 is needed. Columns are separated by tabs.");
}

TEST(Corpus, APartIsTwoFilesOrATsv) {
  EXPECT_EQ(files_of({.source = "a", .target = "b"}).size(), 2u);
  EXPECT_EQ(files_of({.tsv = "c"}).size(), 1u);
  EXPECT_THROW(files_of({}), UsageError);
  EXPECT_THROW(files_of({.source = "a"}), UsageError);
  EXPECT_THROW(files_of({.source = "a", .target = "b", .tsv = "c"}), UsageError);
  EXPECT_THROW(files_of({.tsv = "c", .source_column = 0}), UsageError);
}

TEST(Corpus, AMissingFileIsNamed) {
  const TwoFiles files("a\n", "b\n");
  CorpusPart part = files.part();
  part.target = files.folder / "train.fr";
  EXPECT_TRUE(says(error_of([&] { pairs_of(part); }), "train.fr: No such file or directory"));
}

}  // namespace
}  // namespace nunchi
