#include "nunchi/data/lines.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "nunchi/base/grouped.h"
#include "nunchi/base/random.h"
#include "tests/data/archives.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace nunchi {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;
using testing::error_of;
using testing::gzipped;
using testing::says;
using testing::TemporaryFolder;
using testing::write_text;
using testing::xz_packed;
using Lines = std::vector<std::string>;

Lines all_lines(LineReader& reader) {
  Lines lines;
  for (std::string line; reader.next(line);) lines.push_back(line);
  return lines;
}

Lines lines_of(const fs::path& path) {
  LineReader reader(path);
  return all_lines(reader);
}

Lines lines_of_bytes(std::string_view bytes) {
  const TemporaryFolder folder;
  write_text(folder / "text", bytes);
  return lines_of(folder / "text");
}

// Numbered lines that do not compress well.
std::string long_text(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) {
    const auto noise = philox::bits({static_cast<std::uint32_t>(i), 0, 0, 0}, {1, 2});
    text += std::to_string(i) + " " + std::to_string(noise[0]) + std::to_string(noise[1]) + "\n";
  }
  return text;
}

TEST(Grouped, SeparatesGroupsOfThreeDigitsByCommas) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(63082496), "63,082,496");
  EXPECT_EQ(grouped(-999), "-999");
  EXPECT_EQ(grouped(-123456), "-123,456");
}

TEST(Lines, EndWithANewlineOrWithTheFile) {
  EXPECT_EQ(lines_of_bytes(""), Lines{});
  EXPECT_EQ(lines_of_bytes("\n"), Lines{""});
  EXPECT_EQ(lines_of_bytes("one\ntwo\n"), (Lines{"one", "two"}));
  EXPECT_EQ(lines_of_bytes("one\ntwo"), (Lines{"one", "two"}));
  EXPECT_EQ(lines_of_bytes("\n\none"), (Lines{"", "", "one"}));
}

TEST(Lines, OnlyTheReturnBeforeTheNewlineIsRemoved) {
  EXPECT_EQ(lines_of_bytes("one\r\n\r\ntwo\r\n"), (Lines{"one", "", "two"}));
  EXPECT_EQ(lines_of_bytes("a\rb\r\r\n"), Lines{"a\rb\r"});
}

TEST(Lines, OnlyAByteOrderMarkAtTheBeginningIsRemoved) {
  EXPECT_EQ(lines_of_bytes("\xEF\xBB\xBFone\n\xEF\xBB\xBFtwo\n"),
            (Lines{"one", "\xEF\xBB\xBFtwo"}));
  EXPECT_EQ(lines_of_bytes("\xEF\xBB\xBF"), Lines{});
  EXPECT_EQ(lines_of_bytes("\xEF\xBB"), Lines{"\xEF\xBB"});
}

TEST(Lines, KeepNulAndInvalidBytes) {
  EXPECT_EQ(lines_of_bytes("a\0b\n\0\n\xFF\xC3\n"s), (Lines{"a\0b"s, "\0"s, "\xFF\xC3"}));
}

TEST(Lines, AreNumberedFromOne) {
  const TemporaryFolder folder;
  write_text(folder / "text", "one\ntwo");
  LineReader reader(folder / "text");
  EXPECT_EQ(reader.line_number(), 0);
  std::string line;
  EXPECT_TRUE(reader.next(line));
  EXPECT_EQ(reader.line_number(), 1);
  EXPECT_TRUE(reader.next(line));
  EXPECT_EQ(reader.line_number(), 2);
  for (int call = 0; call < 2; ++call) {
    EXPECT_FALSE(reader.next(line));
    EXPECT_EQ(line, "");
    EXPECT_EQ(reader.line_number(), 2);
  }
  EXPECT_EQ(reader.consumed(), 7);
}

TEST(Lines, AreTheSameFromPlainFilesAndArchives) {
  const TemporaryFolder folder;
  const std::string text = "\xEF\xBB\xBF" + long_text(20'000) + "the last\r\n";
  write_text(folder / "plain", text);
  write_text(folder / "gzip", gzipped(text));
  // The name does not match the contents.
  write_text(folder / "xz.gz", xz_packed(text));
  const Lines plain = lines_of(folder / "plain");
  ASSERT_EQ(plain.size(), 20'001u);
  EXPECT_TRUE(plain.front().starts_with("0 "));
  EXPECT_EQ(plain.back(), "the last");
  EXPECT_EQ(lines_of(folder / "gzip"), plain);
  EXPECT_EQ(lines_of(folder / "xz.gz"), plain);
}

TEST(Lines, ContinueAcrossGzipMembersAndXzStreams) {
  const Lines expected{"one two", "three", "four"};
  EXPECT_EQ(
      lines_of_bytes(gzipped("one ") + gzipped("") + gzipped("two\nthree\nfo") + gzipped("ur\n")),
      expected);
  EXPECT_EQ(lines_of_bytes(xz_packed("one two\nth") + xz_packed("ree\nfour")), expected);
}

TEST(Lines, ArchivesMayBePaddedWithZeros) {
  EXPECT_EQ(lines_of_bytes(gzipped("one\n") + std::string(300'000, '\0')), Lines{"one"});
  EXPECT_EQ(lines_of_bytes(xz_packed("one\n") + std::string(8, '\0')), Lines{"one"});
}

TEST(Lines, AnEmptyArchiveHasNoLines) {
  EXPECT_EQ(lines_of_bytes(gzipped("")), Lines{});
  EXPECT_EQ(lines_of_bytes(xz_packed("")), Lines{});
}

// The decompressor still has megabytes of output after the last compressed byte.
TEST(Lines, HighlyCompressibleLinesAreComplete) {
  const std::string line(9'999, 'a');
  std::string text;
  for (int i = 0; i < 300; ++i) text += line + "\n";
  for (const std::string& packed : {gzipped(text), xz_packed(text)}) {
    const Lines lines = lines_of_bytes(packed);
    ASSERT_EQ(lines.size(), 300u);
    for (const std::string& got : lines) ASSERT_EQ(got, line);
  }
}

TEST(Lines, LongLinesAreCutAndCounted) {
  const TemporaryFolder folder;
  write_text(folder / "text", "12345\n123456\n12345\r\n123456\r\n1234567890123\n\n123456");
  LineReader reader(folder / "text", {.max_bytes = 5});
  EXPECT_EQ(all_lines(reader), (Lines{"12345", "12345", "12345", "12345", "12345", "", "12345"}));
  EXPECT_EQ(reader.cut_lines(), 4);
}

TEST(Lines, WasCutDescribesTheLastLine) {
  const TemporaryFolder folder;
  write_text(folder / "text", "123456\n12345\n");
  LineReader reader(folder / "text", {.max_bytes = 5});
  std::string line;
  reader.next(line);
  EXPECT_TRUE(reader.was_cut());
  reader.next(line);
  EXPECT_FALSE(reader.was_cut());
}

TEST(Lines, AreCutBetweenCharacters) {
  const TemporaryFolder folder;
  // ä has two bytes, 눈 three, 😀 four.
  write_text(folder / "text", "123ää\n12눈눈\n1😀😀\n1234눈\n\x80\x80\x80\x80\x80\x80\x80\n");
  LineReader reader(folder / "text", {.max_bytes = 6});
  EXPECT_EQ(all_lines(reader), (Lines{"123ä", "12눈", "1😀", "1234", "\x80\x80\x80\x80\x80\x80"}));
  EXPECT_EQ(reader.cut_lines(), 5);
}

TEST(Lines, LinesOfAMegabyteAreKeptAndLongerOnesNeedNoMoreMemory) {
  const TemporaryFolder folder;
  const std::size_t megabyte = std::size_t{1} << 20;
  write_text(folder / "text",
             std::string(megabyte, 'x') + "\n" + std::string(9 * megabyte, 'y') + "\nshort\n");
  LineReader reader(folder / "text");
  std::string line;
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line.size(), megabyte);
  EXPECT_FALSE(reader.was_cut());
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, std::string(megabyte, 'y'));
  EXPECT_TRUE(reader.was_cut());
  EXPECT_LT(line.capacity(), 3 * megabyte);
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "short");
  EXPECT_EQ(reader.line_number(), 3);
  EXPECT_EQ(reader.cut_lines(), 1);
}

TEST(Lines, ATruncatedArchiveIsAnErrorWithFileAndLine) {
  const TemporaryFolder folder;
  const std::string text = long_text(30'000);
  for (const std::string& packed : {gzipped(text), xz_packed(text)}) {
    for (const std::size_t kept : {packed.size() - 1, packed.size() - 9, packed.size() / 2}) {
      write_text(folder / "cut", packed.substr(0, kept));
      LineReader reader(folder / "cut");
      const std::string message = error_of([&] { all_lines(reader); });
      EXPECT_TRUE(says(message, (folder / "cut").string())) << message;
      EXPECT_TRUE(says(message, "after line " + grouped(reader.line_number()) + ":")) << message;
      EXPECT_TRUE(says(message, "end in the middle")) << message;
      EXPECT_GT(reader.line_number(), 1'000) << message;
    }
  }
}

TEST(Lines, AnArchiveCutInItsHeaderIsAnError) {
  for (const std::size_t kept : {2u, 3u, 9u}) {
    EXPECT_TRUE(says(error_of([&] { lines_of_bytes(gzipped("one\n").substr(0, kept)); }),
                     "end in the middle"));
  }
  for (const std::size_t kept : {6u, 7u, 14u}) {
    EXPECT_TRUE(says(error_of([&] { lines_of_bytes(xz_packed("one\n").substr(0, kept)); }),
                     "end in the middle"));
  }
}

// Whichever byte is wrong, no wrong line is returned. (A few bytes do not matter: a match in the
// deflate stream may point to the same text elsewhere.)
TEST(Lines, ADamagedArchiveIsAnError) {
  const std::string text = long_text(200);
  const Lines lines = lines_of_bytes(text);
  int errors = 0;
  for (const std::string& packed : {gzipped(text), xz_packed(text)}) {
    for (std::size_t position = 12; position < packed.size(); position += 31) {
      std::string damaged = packed;
      damaged[position] = static_cast<char>(damaged[position] ^ 0xFF);
      try {
        EXPECT_EQ(lines_of_bytes(damaged), lines) << position;
      } catch (const Error& error) {
        EXPECT_TRUE(says(error.what(), "cannot read")) << error.what();
        ++errors;
      }
    }
  }
  EXPECT_GT(errors, 150);
}

TEST(Lines, GarbageAfterAnArchiveIsAnError) {
  EXPECT_TRUE(says(error_of([] { lines_of_bytes(gzipped("one\n") + "garbage"); }), "damaged"));
  EXPECT_TRUE(says(error_of([] { lines_of_bytes(xz_packed("one\n") + "garbage, more of it"); }),
                   "damaged"));
}

TEST(Lines, OtherArchivesAndEncodingsAreRefused) {
  EXPECT_TRUE(says(error_of([] { lines_of_bytes("\x28\xB5\x2F\xFD rest"); }), "a zstd archive"));
  EXPECT_TRUE(says(error_of([] { lines_of_bytes("BZh91AY&SYrest"); }), "a bzip2 archive"));
  EXPECT_TRUE(says(error_of([] { lines_of_bytes("PK\x03\x04rest"); }), "a zip archive"));
  EXPECT_TRUE(says(error_of([] { lines_of_bytes("\xFF\xFEo\0n\0e\0"s); }), "UTF-16"));
  EXPECT_TRUE(says(error_of([] { lines_of_bytes(gzipped("\xFE\xFF\0o\0n"s)); }), "UTF-16"));
}

TEST(Lines, MissingFilesAndFoldersAreNamedInTheError) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { LineReader reader(folder / "none"); }),
            "cannot read " + (folder / "none").string() + ": No such file or directory.");
  EXPECT_EQ(error_of([&] { LineReader reader(folder.path()); }),
            "cannot read " + folder.path().string() + ": it is a folder.");
}

TEST(Lines, AFileWithoutReadPermissionIsAnErrorWithTheReason) {
  constexpr uid_t kNobody = 65534;
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms(0755));
  write_text(folder / "text", "one\n");
  fs::permissions(folder / "text", fs::perms(0));
  // Root may ignore permission bits.
  const uid_t user = ::geteuid();
  if (user == 0 && ::seteuid(kNobody) != 0) GTEST_SKIP() << "cannot stop being root";
  const std::string message = error_of([&] { LineReader reader(folder / "text"); });
  ASSERT_EQ(::seteuid(user), 0);
  EXPECT_TRUE(says(message, "text: Permission denied.")) << message;
}

TEST(Lines, CanBeReadFromAPipe) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string packed = gzipped("one\ntwo\n");
  std::thread writer([&] {
    for (const char byte : packed) {
      if (::write(ends[1], &byte, 1) != 1) break;
    }
    ::close(ends[1]);
  });
  EXPECT_EQ(lines_of("/dev/fd/" + std::to_string(ends[0])), (Lines{"one", "two"}));
  writer.join();
  ::close(ends[0]);
}

}  // namespace
}  // namespace nunchi
