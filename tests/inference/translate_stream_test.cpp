#include "nunchi/inference/translate_stream.h"

#include "nunchi/data/line_stream.h"
#include "nunchi/kernels/product.h"
#include "tests/inference/pipe.h"
#include "tests/inference/small_translation.h"

namespace nunchi::testing {
namespace {

struct Streamed {
  std::vector<std::string> texts;
  std::vector<std::int64_t> numbers;
  std::int64_t lines = 0;
  int flushes = 0;
};

// Translates `input`, which must fit into a pipe's buffer.
Streamed streamed(Translator& translator, const std::string& input,
                  const LineWindowOptions& options, std::size_t max_line_bytes = 1 << 20) {
  Pipe pipe;
  pipe.write(input);
  pipe.close_write_end();
  LineStream lines(pipe.out(), max_line_bytes);
  Streamed result;
  result.lines = translate_stream(
      translator, lines, options,
      [&](std::int64_t number, const Translations& translations) {
        result.numbers.push_back(number);
        result.texts.push_back(translations.at(0).text);
        return true;
      },
      [&] { ++result.flushes; });
  return result;
}

std::string joined_lines(const std::vector<std::string>& texts) {
  std::string lines;
  for (const std::string& text : texts) lines += text + "\n";
  return lines;
}

TEST(TranslateStream, KeepsTheOrderOfLines) {
  if (!kernels::rows_are_independent())
    GTEST_SKIP() << "GEMM results depend on the number of rows here";
  SmallTranslation s;
  Translator translator = s.translator();
  std::vector<std::string> expected;
  for (const std::string& text : some_texts()) expected.push_back(translator.translate(text).text);
  for (const std::size_t window : {1, 2, 4, 1000}) {
    for (const std::size_t bytes : {1, 50, 1 << 20}) {
      const Streamed result =
          streamed(translator, joined_lines(some_texts()), {.lines = window, .bytes = bytes});
      EXPECT_EQ(result.texts, expected) << "windows of " << window << ", " << bytes;
      EXPECT_EQ(result.lines, 9);
      for (std::int64_t i = 0; i < 9; ++i) {
        EXPECT_EQ(result.numbers[static_cast<std::size_t>(i)], i);
      }
    }
  }
  EXPECT_EQ(translator.counts().empty, 1 + 4 * 3);
}

TEST(TranslateStream, EmptyInputGivesEmptyOutput) {
  SmallTranslation s;
  Translator translator = s.translator();
  EXPECT_EQ(streamed(translator, "", {}).lines, 0);
  EXPECT_EQ(streamed(translator, "\n\n", {}).texts, (std::vector<std::string>{"", ""}));
}

// This test would wait forever if answers were not flushed before the next line is read.
TEST(TranslateStream, FlushesWhenNoInputIsWaiting) {
  SmallTranslation s;
  Translator translator = s.translator();
  Pipe pipe;
  LineStream lines(pipe.out());
  pipe.write("a dog\n");
  int answers = 0;
  std::vector<int> answers_at_flush;
  translate_stream(
      translator, lines, {},
      [&](std::int64_t, const Translations&) {
        ++answers;
        return true;
      },
      [&] {
        answers_at_flush.push_back(answers);
        if (answers == 5) {
          pipe.close_write_end();
        } else if (answers == 2) {
          pipe.write("two at\nonce and ha");
        } else if (answers == 3) {
          pipe.write("lf a line\nthe fox\n");
        } else {
          pipe.write("a dog\n");
        }
      });
  EXPECT_EQ(answers_at_flush, (std::vector<int>{1, 2, 3, 5}));
}

TEST(TranslateStream, StopsWhenTheSinkReturnsFalse) {
  SmallTranslation s;
  Translator translator = s.translator();
  Pipe pipe;
  pipe.write("a\nb\nc\nd\n");  // the pipe stays open
  LineStream lines(pipe.out());
  int seen = 0;
  translate_stream(
      translator, lines, {}, [&](std::int64_t, const Translations&) { return ++seen < 2; },
      [] { FAIL() << "flushed after the sink had stopped"; });
  EXPECT_EQ(seen, 2);
}

TEST(TranslateStream, ReadsPrefixesAfterATab) {
  SmallTranslation s;
  Translator translator = s.translator();
  const std::string input = "a dog\tthe fox\nthe tree\nzebra\t\na\tb\tc\n";
  const Streamed with = streamed(translator, input, {.prefixes = true});
  EXPECT_EQ(with.texts[0].rfind("the fox", 0), 0u) << with.texts[0];
  EXPECT_EQ(with.texts[1], translator.translate("the tree").text);
  EXPECT_EQ(with.texts[2], translator.translate("zebra").text);
  EXPECT_EQ(with.texts[3].rfind("b\tc", 0), 0u) << with.texts[3];  // the rest of the line
  const Streamed without = streamed(translator, input, {});
  EXPECT_EQ(without.texts[0], translator.translate("a dog\tthe fox").text);
}

TEST(TranslateStream, CountsEachBadLineOnce) {
  SmallTranslation s;
  Translator translator = s.translator({.search = {.max_length = 5}, .max_source_length = 6});
  // Too long for the stream and for the model; too long for the model alone; invalid and too long.
  std::string input;
  input.append(90, 'a').append("\n").append(30, 'b').append("\nx\n\xFF");
  input.append(90, 'c').append("\n").append(90, ' ').append("\n");
  EXPECT_EQ(streamed(translator, input, {}, 40).lines, 5);
  EXPECT_EQ(translator.counts().cut, 4);
  EXPECT_EQ(translator.counts().repaired, 1);
  EXPECT_EQ(translator.counts().empty, 1);
}

}  // namespace
}  // namespace nunchi::testing
