#include "nunchi/training/run_folder.h"

#include <sys/wait.h>
#include <unistd.h>

#include "nunchi/base/error.h"
#include "nunchi/training/atomic_folder.h"
#include "tests/files.h"
#include "tests/support.h"

namespace nunchi::testing {
namespace {

namespace fs = std::filesystem;
using Begin = RunFolder::Begin;

bool says(const std::string& message, std::string_view words) {
  return message.find(words) != std::string::npos;
}

TEST(RunFolder, BeginsAndResumes) {
  const TemporaryFolder folder;
  const fs::path run = folder / "runs/a";
  { const RunFolder fresh(run, Begin::fresh); }
  EXPECT_TRUE(fs::is_directory(run / "checkpoints"));
  EXPECT_EQ(content(run / "run.json"), "{\"format\":1}\n");
  const RunFolder resumed(run, Begin::resume);
  EXPECT_EQ(resumed.checkpoints(), run / "checkpoints");
}

TEST(RunFolder, AnExistingRunIsRefusedWithoutResumeOrOverwrite) {
  const TemporaryFolder folder;
  { const RunFolder first(folder.path(), Begin::fresh); }
  EXPECT_THROW(RunFolder(folder.path(), Begin::fresh), UsageError);
  const std::string message = error_of([&] { RunFolder(folder.path(), Begin::fresh); });
  EXPECT_TRUE(says(message, "--resume") && says(message, "--overwrite")) << message;
}

TEST(RunFolder, NothingToResumeIsAWrongCallAndLeavesNoTrace) {
  const TemporaryFolder folder;
  EXPECT_THROW(RunFolder(folder / "a", Begin::resume), UsageError);
  EXPECT_TRUE(folder.empty());
}

TEST(RunFolder, OverwriteRemovesTheRunAndNothingElse) {
  const TemporaryFolder folder;
  { const RunFolder first(folder.path(), Begin::fresh); }
  fs::create_directories(folder / "checkpoints/step-5");
  fs::create_directories(folder / "cache");
  for (const char* name :
       {"notes.txt", "cache/x", "log.jsonl", "model.safetensors", "shared.spm"}) {
    write_text(folder / name, "x");
  }
  const RunFolder again(folder.path(), Begin::overwrite);
  EXPECT_TRUE(fs::is_empty(folder / "checkpoints"));
  EXPECT_TRUE(fs::exists(folder / "notes.txt") && fs::exists(folder / "cache/x"));
  for (const char* name : {"log.jsonl", "model.safetensors", "shared.spm"}) {
    EXPECT_FALSE(fs::exists(folder / name)) << name;
  }
}

TEST(RunFolder, AModelThatNoRunWroteStays) {
  const TemporaryFolder folder;
  write_text(folder / "model.safetensors", "precious");
  for (const Begin begin : {Begin::fresh, Begin::overwrite}) {
    EXPECT_THROW(RunFolder(folder.path(), begin), UsageError);
  }
  EXPECT_EQ(content(folder / "model.safetensors"), "precious");
  EXPECT_EQ(folder.files(), 1);
}

TEST(RunFolder, OneProcessAtATime) {
  const TemporaryFolder folder;
  {
    const RunFolder held(folder.path(), Begin::fresh);
    const std::string message = error_of([&] { RunFolder(folder.path(), Begin::resume); });
    EXPECT_TRUE(says(message, "is in use by another run")) << message;
    EXPECT_THROW(RunFolder(folder.path(), Begin::overwrite), Error);
  }
  const RunFolder free_again(folder.path(), Begin::resume);
}

TEST(RunFolder, AKilledProcessHoldsNothing) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    const RunFolder held(folder.path(), Begin::fresh);
    ::raise(SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const RunFolder resumed(folder.path(), Begin::resume);
}

TEST(RunFolder, LeftoversOfKilledWritersGo) {
  const TemporaryFolder folder;
  { const RunFolder first(folder.path(), Begin::fresh); }
  fs::create_directories(folder / "checkpoints/.nunchi-7-0.tmp/deep");
  write_text(folder / ".nunchi-7-1.tmp", "half");
  fs::create_directories(folder / "checkpoints/step-3");
  const RunFolder resumed(folder.path(), Begin::resume);
  EXPECT_FALSE(fs::exists(folder / ".nunchi-7-1.tmp"));
  EXPECT_FALSE(fs::exists(folder / "checkpoints/.nunchi-7-0.tmp"));
  EXPECT_TRUE(fs::exists(folder / "checkpoints/step-3"));
}

TEST(RunFolder, AnotherFormatIsRefused) {
  const TemporaryFolder folder;
  for (const char* text : {"{\"format\": 2}", "{}", "[", "", "{\"format\": \"x\"}"}) {
    write_text(folder / "run.json", text);
    EXPECT_THROW(RunFolder(folder.path(), Begin::resume), Error) << text;
  }
}

TEST(RunFolder, AFolderThatCannotBeWrittenIsAnError) {
  const TemporaryFolder folder;
  write_text(folder / "file", "");
  const std::string message = error_of([&] { RunFolder(folder / "file/run", Begin::fresh); });
  EXPECT_TRUE(says(message, "cannot make the folder")) << message;
}

TEST(AtomicFolder, AppearsWholeOrNotAtAll) {
  const TemporaryFolder folder;
  {
    AtomicFolder given_up(folder / "a");
    write_text(given_up.temporary() / "x", "1");
  }
  EXPECT_TRUE(folder.empty());
  AtomicFolder made(folder / "a");
  write_text(made.temporary() / "x", "1");
  EXPECT_FALSE(fs::exists(folder / "a"));
  made.commit();
  EXPECT_EQ(content(folder / "a/x"), "1");
  EXPECT_EQ(folder.files(), 1);
}

TEST(AtomicFolder, ReplacesAnEarlierOneInOneStep) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "a");
  write_text(folder / "a/old", "1");
  {
    AtomicFolder made(folder / "a");
    write_text(made.temporary() / "new", "2");
    made.commit();
  }
  EXPECT_EQ(content(folder / "a/new"), "2");
  EXPECT_FALSE(fs::exists(folder / "a/old"));
  EXPECT_EQ(folder.files(), 1);
}

}  // namespace
}  // namespace nunchi::testing
