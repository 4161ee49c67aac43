#include "nunchi/base/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>

#include "nunchi/base/error.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace nunchi {
namespace {

namespace fs = std::filesystem;
using testing::bytes;
using testing::content;
using testing::error_of;
using testing::says;
using testing::TemporaryFolder;
using testing::write_text;

void write_file(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(bytes(text));
  file.commit();
}

TEST(AtomicFile, HasAllWrittenBytesAfterCommit) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "a.txt");
  file.write(bytes("one "));
  file.write({});
  file.write(bytes("two"));
  EXPECT_FALSE(fs::exists(folder / "a.txt"));
  file.commit();
  EXPECT_EQ(content(folder / "a.txt"), "one two");
  EXPECT_EQ(folder.entry_count(), 1);
}

TEST(AtomicFile, ReplacesAnEarlierFile) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "a long first version");
  write_file(folder / "a.txt", "second");
  EXPECT_EQ(content(folder / "a.txt"), "second");
  EXPECT_EQ(folder.entry_count(), 1);
}

TEST(AtomicFile, MayBeEmpty) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "");
  EXPECT_TRUE(fs::exists(folder / "a.txt"));
  EXPECT_EQ(fs::file_size(folder / "a.txt"), 0u);
}

TEST(AtomicFile, LeavesNoTraceWithoutCommit) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "old");
  {
    AtomicFile file(folder / "a.txt");
    file.write(bytes("new"));
    EXPECT_EQ(folder.entry_count(), 2);
  }
  EXPECT_EQ(content(folder / "a.txt"), "old");
  EXPECT_EQ(folder.entry_count(), 1);
}

TEST(AtomicFile, TwoWritersOfOneNameDoNotMix) {
  const TemporaryFolder folder;
  AtomicFile first(folder / "a.txt"), second(folder / "a.txt");
  first.write(bytes("first"));
  second.write(bytes("second"));
  second.commit();
  EXPECT_EQ(content(folder / "a.txt"), "second");
  first.commit();
  EXPECT_EQ(content(folder / "a.txt"), "first");
  EXPECT_EQ(folder.entry_count(), 1);
}

TEST(AtomicFile, ARelativePathIsResolvedWhenTheFileIsOpened) {
  const TemporaryFolder folder;
  const fs::path old_folder = fs::current_path();
  fs::current_path(folder / "");
  AtomicFile file("a.txt");
  fs::current_path(old_folder);
  file.write(bytes("here"));
  file.commit();
  EXPECT_EQ(content(folder / "a.txt"), "here");
}

TEST(AtomicFile, ANewFileObeysTheUmask) {
  const TemporaryFolder folder;
  const mode_t old_mask = ::umask(027);
  write_file(folder / "a.txt", "");
  ::umask(old_mask);
  EXPECT_EQ(fs::status(folder / "a.txt").permissions(), fs::perms(0640));
}

TEST(AtomicFile, AReplacedFileKeepsItsMode) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "old");
  fs::permissions(folder / "a.txt", fs::perms(0600));
  write_file(folder / "a.txt", "new");
  EXPECT_EQ(content(folder / "a.txt"), "new");
  EXPECT_EQ(fs::status(folder / "a.txt").permissions(), fs::perms(0600));
}

TEST(AtomicFile, ALinkStaysAndItsTargetIsReplaced) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "deep");
  write_file(folder / "deep/a.txt", "old");
  fs::create_symlink("deep/a.txt", folder / "one");
  fs::create_symlink(folder / "one", folder / "two");
  fs::create_symlink("deep/none.txt", folder / "dangling");
  write_file(folder / "two", "new");
  write_file(folder / "dangling", "made");
  for (const char* link : {"one", "two", "dangling"}) EXPECT_TRUE(fs::is_symlink(folder / link));
  EXPECT_EQ(content(folder / "deep/a.txt"), "new");
  EXPECT_EQ(content(folder / "deep/none.txt"), "made");
  EXPECT_EQ(folder.entry_count(), 4);
  fs::create_symlink("round", folder / "round");
  EXPECT_TRUE(says(error_of([&] { write_file(folder / "round", ""); }), "round"));
}

TEST(AtomicFile, ADeviceOrAPipeIsWrittenDirectly) {
  write_file("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::string received;
  std::thread reader([&] { received = content(folder / "pipe"); });
  write_file(folder / "pipe", "through the pipe");
  reader.join();
  EXPECT_EQ(received, "through the pipe");
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
  EXPECT_EQ(folder.entry_count(), 1);
}

TEST(AtomicFile, ALinkToAnOpenFileInProcIsWrittenDirectly) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "old ");
  const int open = ::open((folder / "a.txt").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  fs::create_symlink("/proc/self/fd/" + std::to_string(open), folder / "stdout");
  write_file(folder / "stdout", "and new");
  ::close(open);
  EXPECT_EQ(content(folder / "a.txt"), "old and new");
}

TEST(AtomicFile, AKilledWriterLeavesTheEarlierFileAndBlocksNoNewWriter) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(folder / "a.txt");
    file.write(bytes("half of the n"));
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(content(folder / "a.txt"), "old");
  write_file(folder / "a.txt", "new");
  EXPECT_EQ(content(folder / "a.txt"), "new");
}

TEST(AtomicFile, ALeftoverTemporaryFileBlocksNoNewWriter) {
  const TemporaryFolder folder;
  const auto left_over = folder / (".nunchi-" + std::to_string(::getpid()) + "-0.tmp");
  std::ofstream(left_over) << "left over";
  write_file(folder / "a.txt", "new");
  EXPECT_EQ(content(folder / "a.txt"), "new");
  EXPECT_EQ(content(left_over), "left over");
}

TEST(AtomicFile, NothingCanBeWrittenAfterCommit) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "a.txt");
  file.write(bytes("whole"));
  file.commit();
  EXPECT_THROW(file.write(bytes("more")), Error);
  EXPECT_THROW(file.commit(), Error);
  EXPECT_EQ(content(folder / "a.txt"), "whole");
}

TEST(AtomicFile, AMissingFolderIsAnErrorThatNamesTheFile) {
  const TemporaryFolder folder;
  const std::string message = error_of([&] { AtomicFile file(folder / "none/a.txt"); });
  EXPECT_TRUE(says(message, "cannot write")) << message;
  EXPECT_TRUE(says(message, "none/a.txt: No such file or directory")) << message;
}

TEST(AtomicFile, AFolderOfThatNameIsNotReplaced) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "a.txt");
  const std::string message = error_of([&] { AtomicFile file(folder / "a.txt"); });
  EXPECT_TRUE(says(message, "a.txt: Is a directory")) << message;
  EXPECT_TRUE(fs::is_directory(folder / "a.txt"));
  EXPECT_EQ(folder.entry_count(), 1);
}

TEST(AtomicFile, AReadOnlyFolderIsAnErrorWithTheReason) {
  constexpr uid_t kNobody = 65534;
  const TemporaryFolder folder;
  fs::permissions(folder / "", fs::perms(0555));
  // Root ignores permission bits, so the test gives up root.
  const uid_t user = ::geteuid();
  if (user == 0 && ::seteuid(kNobody) != 0) GTEST_SKIP() << "cannot stop being root";
  const std::string message = error_of([&] { AtomicFile file(folder / "a.txt"); });
  ASSERT_EQ(::seteuid(user), 0);
  fs::permissions(folder / "", fs::perms(0755));
  EXPECT_TRUE(says(message, "a.txt: Permission denied")) << message;
}

// A limit on file sizes simulates a full disk: both fail in the middle of the data.
TEST(AtomicFile, ADiskThatFillsUpLeavesTheEarlierFile) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "old");
  rlimit old_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, old_limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message =
      error_of([&] { write_file(folder / "a.txt", std::string(10'000, 'x')); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, previous);
  EXPECT_TRUE(says(message, "a.txt: File too large")) << message;
  EXPECT_EQ(content(folder / "a.txt"), "old");
  EXPECT_EQ(folder.entry_count(), 1);
}

// A killed process leaves its temporary file; a living one needs it.
TEST(AtomicFile, OnlyAbandonedTemporaryFilesAreRemoved) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    AtomicFile file(folder / "killed");
    file.write(bytes("half of it"));
    ::raise(SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  AtomicFile living(folder / "living");
  living.write(bytes("whole"));
  write_text(folder / ".nunchi-notes", "of the user");
  ASSERT_EQ(folder.entry_count(), 3);
  remove_abandoned_files(folder.path());
  EXPECT_EQ(folder.entry_count(), 2);
  living.commit();
  EXPECT_EQ(content(folder / "living"), "whole");
  EXPECT_TRUE(fs::exists(folder / ".nunchi-notes"));
  remove_abandoned_files(folder / "missing");
}

}  // namespace
}  // namespace nunchi
