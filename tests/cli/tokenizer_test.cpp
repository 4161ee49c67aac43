// `nunchi tokenizer`: output, messages and exit codes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>

#include "tests/files.h"
#include "tests/paths.h"
#include "tests/text/small_corpus.h"

namespace nunchi::testing {
namespace {

struct ProgramResult {
  int code;
  std::string out, error;
};

ProgramResult run(const std::string& arguments, std::string_view input = "") {
  const TemporaryFolder folder;
  write_text(folder / "in", input);
  const std::string command = std::string(NUNCHI_PROGRAM) + " tokenizer " + arguments + " <" +
                              (folder / "in").string() + " >" + (folder / "out").string() + " 2>" +
                              (folder / "error").string();
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content(folder / "out"),
          content(folder / "error")};
}

class TokenizerProgram : public ::testing::Test {
 protected:
  TokenizerProgram() {
    for (const std::string& line : small_corpus()) corpus_ += line + "\n";
    write_text(folder_ / "corpus.txt", corpus_);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  // Learns the tokenizer that a test uses.
  std::string trained(const std::string& options = "--vocab 400") const {
    const ProgramResult result =
        run("train --input " + path("corpus.txt") + " --output " + path("t.spm") + " " + options);
    EXPECT_EQ(result.code, 0) << result.error;
    EXPECT_TRUE(result.out.empty()) << result.out;
    return path("t.spm");
  }

  const TemporaryFolder folder_;
  std::string corpus_;
};

TEST_F(TokenizerProgram, TrainsEncodesAndDecodes) {
  for (const std::string options :
       {"--vocab 400", "--vocab 400 --kind unigram", "--vocab 150 --no-byte-fallback"}) {
    const std::string model = trained(options + " --character-coverage 1");
    for (const std::string ids : {"", " --ids"}) {
      const ProgramResult encoded = run("encode " + model + ids, corpus_);
      ASSERT_EQ(encoded.code, 0) << encoded.error;
      EXPECT_TRUE(encoded.error.empty()) << encoded.error;
      const ProgramResult decoded = run("decode " + model + ids, encoded.out);
      EXPECT_EQ(decoded.out, corpus_) << options << ids;
      EXPECT_TRUE(decoded.error.empty()) << decoded.error;
    }
  }
}

TEST_F(TokenizerProgram, PiecesAndIdsAreSeparatedBySpaces) {
  const std::string model = trained("--vocab 420 --symbol '<2de>' --symbol '<2en>'");
  EXPECT_EQ(run("encode " + model, "<2de> cat").out, "\u2581 <2de> \u2581cat\n");
  EXPECT_EQ(run("encode --ids " + model, "<2de> <2en>\n").out.find(" 3 "), 3u)
      << "symbols come after the special tokens";
}

TEST_F(TokenizerProgram, PrintsOneLineForEachLine) {
  const std::string model = trained();
  const ProgramResult encoded = run("encode --ids " + model, "\n\r\n  \ncat\r\n\ndog");
  EXPECT_EQ(std::count(encoded.out.begin(), encoded.out.end(), '\n'), 6);
  EXPECT_EQ(encoded.out.rfind("\n\n\n", 0), 0u) << encoded.out;
  EXPECT_EQ(run("decode --ids " + model, encoded.out).out, "\n\n\ncat\n\ndog\n");
  EXPECT_EQ(run("encode " + model, "").out, "");
  // Byte pieces can form a line break.
  EXPECT_EQ(run("decode " + model, "a <0x0A> a\n").out, "a a\n");
}

TEST_F(TokenizerProgram, BadInputIsCountedAndDoesNotEndTheJob) {
  const std::string model = trained();
  const std::string zero("a\0b\n", 4);
  const ProgramResult bytes = run("encode " + model, "\xFF\xFE\n" + zero + "\xED\xA0\x80\n");
  EXPECT_EQ(bytes.code, 0);
  EXPECT_EQ(bytes.error, "nunchi: 2 lines with invalid UTF-8: replaced by U+FFFD.\n");
  EXPECT_EQ(run("decode " + model, bytes.out).out,
            "\uFFFD\uFFFD\n" + zero + "\uFFFD\uFFFD\uFFFD\n");
  const ProgramResult words = run("decode " + model, "\u2581cat nonsense \u2581dog\n");
  EXPECT_EQ(words.out, "cat \u2047  dog\n");
  EXPECT_EQ(words.error, "nunchi: 1 token is not in the vocabulary, read as <unk>.\n");
  const ProgramResult numbers = run("decode --ids " + model, "-1 400 99999999999999999999 4x x\n");
  EXPECT_EQ(numbers.code, 0);
  EXPECT_EQ(numbers.error, "nunchi: 5 tokens are not in the vocabulary, read as <unk>.\n");
}

TEST_F(TokenizerProgram, LongLinesAreCutAtAMegabyte) {
  const std::string model = trained();
  const std::string whole(std::size_t{1} << 20, 'a');
  const ProgramResult kept = run("encode " + model, whole + "\r\ncat\n");
  EXPECT_TRUE(kept.error.empty()) << kept.error;
  const ProgramResult cut = run("encode " + model, whole + "\u00e9\ncat\n");
  EXPECT_EQ(cut.error, "nunchi: 1 line was longer than 1 MiB, cut there.\n");
  EXPECT_EQ(cut.out, kept.out);
  EXPECT_TRUE(cut.out.ends_with("\n\u2581cat\n"));
}

TEST_F(TokenizerProgram, AModelFolderHasOneOrTwoTokenizers) {
  const std::string model = trained();
  namespace fs = std::filesystem;
  fs::create_directory(folder_ / "two");
  fs::copy_file(model, folder_ / "two/source.spm");
  trained("--vocab 401");
  fs::copy_file(model, folder_ / "two/target.spm");
  EXPECT_EQ(run("encode --side source " + path("two"), "cat").code, 0);
  EXPECT_EQ(run("decode --ids --side target " + path("two"), "400\n").error, "");
  EXPECT_NE(run("decode --ids --side source " + path("two"), "400\n").error, "");
  const ProgramResult which = run("encode " + path("two"), "cat");
  EXPECT_EQ(which.code, 1);
  EXPECT_EQ(which.error, "nunchi: '" + path("two") +
                             "' has no tokenizer.spm or tokenizer.tok, but one for each side: add "
                             "--side source or --side target.\n");
  fs::create_directory(folder_ / "one");
  EXPECT_EQ(run("encode " + path("one"), "cat").error,
            "nunchi: '" + path("one") + "' has no tokenizer.spm or tokenizer.tok.\n");
  fs::copy_file(model, folder_ / "one/tokenizer.spm");
  EXPECT_EQ(run("encode " + path("one"), "cat").out, "\u2581cat\n");
  EXPECT_EQ(run("encode --side target " + path("one"), "cat").out, "\u2581cat\n");
}

TEST_F(TokenizerProgram, ReadsSeveralFilesAndArchives) {
  const std::string model = trained();
  const std::string expected = content(model);
  const std::size_t half = corpus_.find('\n', corpus_.size() / 2) + 1;
  write_text(folder_ / "first.txt", corpus_.substr(0, half));
  gzFile archive = gzopen(path("second.gz").c_str(), "wb");
  gzwrite(archive, corpus_.data() + half, static_cast<unsigned>(corpus_.size() - half));
  gzclose(archive);
  const ProgramResult result = run("train --vocab 400 --output " + path("u.spm") + " --input " +
                                   path("first.txt") + " " + path("second.gz"));
  EXPECT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(content(folder_ / "u.spm"), expected);
  EXPECT_EQ(result.error, path("u.spm") + ": 400 tokens, learned from 400 lines.\n");
}

TEST_F(TokenizerProgram, FailuresAreReportedInOneLineAndLeaveNoFile) {
  const auto entries = folder_.entry_count();
  const std::string output = " --output " + path("t.spm");
  for (const std::string& arguments :
       {"train --vocab 400 --input " + path("missing.txt") + output,
        "train --vocab 9999 --input " + path("corpus.txt") + output,
        "train --vocab 270 --input " + path("corpus.txt") + output,
        "train --vocab 400 --input /dev/null" + output,
        "train --vocab 400 --input " + path("corpus.txt") + " --output " + path("no/t.spm"),
        "encode " + path("missing.spm"), "encode " + path("corpus.txt"),
        "decode " + path("corpus.txt"), std::string("encode /dev/null")}) {
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.code, 1) << arguments;
    EXPECT_EQ(result.error.rfind("nunchi: ", 0), 0u) << result.error;
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
    EXPECT_TRUE(result.out.empty());
  }
  EXPECT_EQ(folder_.entry_count(), entries);
}

TEST_F(TokenizerProgram, OptionsWithoutEffectAreWrongCalls) {
  const auto refused = [&](const std::string& arguments, const std::string& what) {
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.code, 2) << arguments;
    EXPECT_NE(result.error.find(what), std::string::npos) << result.error;
  };
  const std::string train = "train --input " + path("corpus.txt") + " --output ";
  const std::string bytes = train + path("t.tok") + " --kind bytes";
  refused(bytes + " --vocab 300", "--vocab has no effect: a tokenizer of bytes");
  refused(bytes + " --split-digits", "--split-digits has no effect: --kind is neither");
  refused(train + path("t.tok") + " --kind characters --symbol '<x>'", "--symbol has no effect");
  // The extension has to match the format.
  refused(train + path("t.spm") + " --kind characters",
          "a tokenizer of kind characters is a .tok file");
  refused(train + path("t.tok") + " --vocab 400", "a tokenizer of kind bpe is a .spm file");
  EXPECT_EQ(folder_.entry_count(), 1);
  const ProgramResult learned = run(bytes);
  EXPECT_EQ(learned.code, 0) << learned.error;
  EXPECT_NE(learned.error.find("259 tokens, independent of the text."), std::string::npos)
      << learned.error;
  refused("encode " + path("t.tok") + " --side source", "--side needs a model folder");
}

TEST_F(TokenizerProgram, WrongCallsExitWithTwo) {
  const std::string train = "train --input " + path("corpus.txt") + " --output " + path("t.spm");
  for (const std::string& arguments :
       {std::string(""), std::string("encode"), train, train + " --vocab x", train + " --vocab 2",
        train + " --vocab 400 --kind words", train + " --vocab 400 --symbol '<s>'",
        train + " --vocab 400 --character-coverage 0.1",
        "encode --side left " + path("corpus.txt")}) {
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.code, 2) << arguments << ": " << result.error;
    EXPECT_FALSE(result.error.empty());
  }
}

}  // namespace
}  // namespace nunchi::testing
