#include "nunchi/data/line_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/errors.h"
#include "tests/files.h"
#include "tests/inference/pipe.h"

namespace nunchi::testing {
namespace {

using Lines = std::vector<std::string>;

struct ReadResult {
  Lines lines;
  std::int64_t cut = 0;
};

ReadResult read_all(LineStream& stream) {
  ReadResult read;
  for (std::string line; stream.next(line);) read.lines.push_back(line);
  read.cut = stream.cut_lines();
  return read;
}

// Reads `text` from a file.
ReadResult from_file(const std::string& text, std::size_t max_line_bytes) {
  const TemporaryFolder folder;
  write_text(folder / "text", text);
  const int file = ::open((folder / "text").c_str(), O_RDONLY);
  LineStream stream(file, max_line_bytes);
  ReadResult read = read_all(stream);
  ::close(file);
  return read;
}

// Reads `text` from a pipe, which receives it in chunks of `size` bytes.
ReadResult from_pipe(const std::string& text, std::size_t size, std::size_t max_line_bytes) {
  Pipe pipe;
  LineStream stream(pipe.out(), max_line_bytes);
  ReadResult read;
  std::string line;
  for (std::size_t begin = 0; begin < text.size(); begin += size) {
    pipe.write(text.substr(begin, size));
    while (stream.is_ready()) {
      EXPECT_TRUE(stream.next(line));
      read.lines.push_back(line);
    }
  }
  pipe.close_write_end();
  EXPECT_TRUE(stream.is_ready());
  const ReadResult rest = read_all(stream);
  read.lines.insert(read.lines.end(), rest.lines.begin(), rest.lines.end());
  read.cut = rest.cut;
  return read;
}

void expect_lines(const std::string& text, const Lines& lines, std::size_t max_line_bytes = 1 << 20,
                  std::int64_t cut = 0) {
  const ReadResult file = from_file(text, max_line_bytes);
  EXPECT_EQ(file.lines, lines);
  EXPECT_EQ(file.cut, cut);
  for (const std::size_t size : {1, 2, 3, 7, 1000}) {
    const ReadResult pipe = from_pipe(text, size, max_line_bytes);
    EXPECT_EQ(pipe.lines, lines) << "in chunks of " << size;
    EXPECT_EQ(pipe.cut, cut) << "in chunks of " << size;
  }
}

TEST(LineStream, SplitsAtLineBreaks) {
  expect_lines("", {});
  expect_lines("one", {"one"});
  expect_lines("one\n", {"one"});
  expect_lines("one\n\ntwo\n\n", {"one", "", "two", ""});
  expect_lines("\n", {""});
}

TEST(LineStream, RemovesCarriageReturnsAtTheEnd) {
  expect_lines("one\r\ntwo\r\n\r\nthree\r", {"one", "two", "", "three"});
  expect_lines("a\rb\r\r\n", {"a\rb\r"});
}

TEST(LineStream, RemovesAByteOrderMarkAtTheBeginning) {
  expect_lines("\xEF\xBB\xBFone\n\xEF\xBB\xBFtwo\n", {"one", "\xEF\xBB\xBFtwo"});
  expect_lines("\n\xEF\xBB\xBFtwo\n", {"", "\xEF\xBB\xBFtwo"});
  expect_lines("\xEF\xBB", {"\xEF\xBB"});
}

TEST(LineStream, KeepsEveryOtherByte) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) {
    if (byte != '\n') bytes += static_cast<char>(byte);
  }
  expect_lines(bytes + "\n" + bytes, {bytes, bytes});
  expect_lines(std::string("a\0b\n\0\n", 6), {std::string("a\0b", 3), std::string("\0", 1)});
}

TEST(LineStream, CutsLinesThatAreTooLong) {
  expect_lines("0123456789\nabc\n", {"0123456789", "abc"}, 10);
  expect_lines("0123456789\r\nabc\n", {"0123456789", "abc"}, 10);
  expect_lines("0123456789X\nabc\n", {"0123456789", "abc"}, 10, 1);
  expect_lines("0123456789X\r\nabc", {"0123456789", "abc"}, 10, 1);
  expect_lines(
      "\xEF\xBB\xBF"
      "0123456789\r\nabc\n",
      {"0123456789", "abc"}, 10);
  expect_lines(
      "\xEF\xBB\xBF"
      "0123456789X\r\nabc\n",
      {"0123456789", "abc"}, 10, 1);
  const std::string long_one(3000, 'x');
  expect_lines(long_one + "\n" + long_one, {"xxxxxxxxxx", "xxxxxxxxxx"}, 10, 2);
  expect_lines("\n" + long_one + "\n\n\nend", {"", "xxxxxxxxxx", "", "", "end"}, 10, 1);
}

TEST(LineStream, CutsBetweenCharacters) {
  // 눈 has three bytes, 🐕 four.
  expect_lines("눈눈눈눈\n", {"눈눈눈"}, 9, 1);
  expect_lines("눈눈눈눈\n", {"눈눈눈"}, 10, 1);
  expect_lines("눈눈눈눈\n", {"눈눈눈"}, 11, 1);
  expect_lines("눈눈눈눈\n", {"눈눈눈눈"}, 12);
  expect_lines("🐕🐕🐕\n", {"🐕🐕"}, 11, 1);
  // Continuation bytes alone are not characters and are cut anywhere.
  std::string continuation_bytes(40, '\x80');
  continuation_bytes += '\n';
  expect_lines(continuation_bytes, {std::string(10, '\x80')}, 10, 1);
}

TEST(LineStream, ALineOfAMegabyteIsNotCut) {
  const std::string line(std::size_t{1} << 20, 'x');
  const ReadResult read = from_file(line + "\n" + line + "y\nend\n", std::size_t{1} << 20);
  EXPECT_EQ(read.lines, (Lines{line, line, "end"}));
  EXPECT_EQ(read.cut, 1);
}

TEST(LineStream, KnowsWhetherALineHasArrived) {
  Pipe pipe;
  LineStream stream(pipe.out());
  std::string line;
  EXPECT_FALSE(stream.is_ready());
  pipe.write("half");
  EXPECT_FALSE(stream.is_ready());
  pipe.write(" a line\nand");
  EXPECT_TRUE(stream.is_ready());
  EXPECT_TRUE(stream.next(line));
  EXPECT_EQ(line, "half a line");
  EXPECT_FALSE(stream.is_ready());
  pipe.close_write_end();
  EXPECT_TRUE(stream.is_ready());
  EXPECT_TRUE(stream.next(line));
  EXPECT_EQ(line, "and");
  EXPECT_TRUE(stream.is_ready());
  EXPECT_FALSE(stream.next(line));
  EXPECT_FALSE(stream.next(line));
}

TEST(LineStream, AReadErrorIsReported) {
  const TemporaryFolder folder;
  const int descriptor = ::open(folder.path().c_str(), O_RDONLY);
  LineStream stream(descriptor);
  std::string line;
  EXPECT_TRUE(says(error_of([&] { stream.next(line); }), "the input cannot be read"));
  ::close(descriptor);
}

}  // namespace
}  // namespace nunchi::testing
