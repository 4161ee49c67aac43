#include "nunchi/base/random_access_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/errors.h"
#include "tests/files.h"

namespace nunchi::testing {
namespace {

namespace fs = std::filesystem;

std::string text_at(const RandomAccessFile& file, std::uint64_t offset, std::size_t size) {
  const std::vector<char> values = file.read_values<char>(offset, size);
  return {values.begin(), values.end()};
}

TEST(RandomAccessFile, ReadsFilesAndMemory) {
  const TemporaryFolder folder;
  write_text(folder / "file", "0123456789");
  const auto check = [](const RandomAccessFile& file) {
    EXPECT_EQ(file.size(), 10u);
    EXPECT_EQ(text_at(file, 0, 10), "0123456789");
    EXPECT_EQ(text_at(file, 3, 4), "3456");
    EXPECT_EQ(text_at(file, 10, 0), "");
    EXPECT_TRUE(says(error_of([&] { text_at(file, 3, 8); }), "it is too short"));
    EXPECT_TRUE(says(error_of([&] { text_at(file, UINT64_MAX, 1); }), "it is too short"));
    EXPECT_NO_THROW(file.check_unchanged());
  };
  check(RandomAccessFile(folder / "file"));
  check(RandomAccessFile(bytes("0123456789"), "memory"));
}

TEST(RandomAccessFile, RefusesWhatIsNotAPlainFile) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const fs::path& path : {folder.path(), folder / "pipe", fs::path("/dev/null")}) {
    EXPECT_TRUE(says(error_of([&] { RandomAccessFile{path}; }), "it is not a plain file")) << path;
  }
  EXPECT_TRUE(says(error_of([&] { RandomAccessFile{folder / "none"}; }), "No such file"));
}

TEST(RandomAccessFile, NoticesChanges) {
  const TemporaryFolder folder;
  write_text(folder / "file", "0123456789");
  const RandomAccessFile file(folder / "file");
  fs::rename(folder / "file", folder / "renamed");
  EXPECT_NO_THROW(file.check_unchanged());
  fs::resize_file(folder / "renamed", 5);
  EXPECT_EQ(text_at(file, 0, 5), "01234");
  EXPECT_TRUE(says(error_of([&] { text_at(file, 4, 2); }), "it was cut short while"));
  EXPECT_TRUE(says(error_of([&] { file.check_unchanged(); }), "it was changed while"));
  fs::remove(folder / "renamed");
  EXPECT_EQ(text_at(file, 0, 5), "01234");
}

TEST(RandomAccessFile, SmallFilesHaveAMaximumSize) {
  const TemporaryFolder folder;
  write_text(folder / "file", "0123456789");
  EXPECT_EQ(read_small_file(folder / "file"), "0123456789");
  EXPECT_EQ(read_small_file(folder / "file", 10), "0123456789");
  EXPECT_TRUE(says(error_of([&] { read_small_file(folder / "file", 9); }),
                   "file: 10 bytes are too many; at most 9 are allowed."));
}

}  // namespace
}  // namespace nunchi::testing
