#include "nunchi/training/run/run_folder.h"

#include <sys/wait.h>
#include <unistd.h>

#include "nunchi/base/error.h"
#include "nunchi/training/run/atomic_folder.h"
#include "nunchi/training/run/checkpoint.h"
#include "tests/files.h"
#include "tests/support.h"

namespace nunchi::testing {
namespace {

namespace fs = std::filesystem;
using StartMode = RunFolder::StartMode;

void start_run(const fs::path& path, StartMode mode) {
  RunFolder folder(path, mode);
  folder.start();
}

TEST(RunFolder, StartsAndResumes) {
  const TemporaryFolder folder;
  const fs::path run = folder / "runs/a";
  start_run(run, StartMode::fresh);
  EXPECT_TRUE(fs::is_directory(run / "checkpoints"));
  EXPECT_EQ(content(run / "run.json"), "{\"format\":1}\n");
  RunFolder resumed(run, StartMode::resume);
  resumed.start();
  EXPECT_EQ(resumed.checkpoints(), run / "checkpoints");
}

TEST(RunFolder, AnUnstartedRunLeavesOnlyPreparedData) {
  const TemporaryFolder folder;
  { const RunFolder abandoned(folder / "runs/a/", StartMode::fresh); }
  EXPECT_TRUE(folder.empty());
  {
    const RunFolder abandoned(folder / "runs/a", StartMode::fresh);
    fs::create_directories(folder / "runs/a/cache");
  }
  EXPECT_TRUE(folder.empty());
  {
    const RunFolder abandoned(folder / "runs/a", StartMode::fresh);
    fs::create_directories(folder / "runs/a/cache");
    write_text(folder / "runs/a/cache/pairs", "took an hour");
  }
  EXPECT_EQ(content(folder / "runs/a/cache/pairs"), "took an hour");
  EXPECT_FALSE(fs::exists(folder / "runs/a/lock"));
}

TEST(RunFolder, AFreshRunReplacesARunWithoutCheckpoints) {
  const TemporaryFolder folder;
  start_run(folder.path(), StartMode::fresh);
  write_text(folder / "log.jsonl", "{}");
  start_run(folder.path(), StartMode::fresh);
  EXPECT_FALSE(fs::exists(folder / "log.jsonl"));
}

TEST(RunFolder, AFinishedRunIsProtectedEvenWithoutCheckpoints) {
  const TemporaryFolder folder;
  start_run(folder.path(), StartMode::fresh);
  write_text(folder / "model.safetensors", "precious");
  EXPECT_THROW(RunFolder(folder.path(), StartMode::fresh), UsageError);
  EXPECT_THROW(RunFolder(folder.path(), StartMode::resume), UsageError);
  EXPECT_EQ(content(folder / "model.safetensors"), "precious");
}

TEST(RunFolder, AnExistingRunIsRejectedWithoutResumeOrOverwrite) {
  const TemporaryFolder folder;
  start_run(folder.path(), StartMode::fresh);
  fs::create_directories(folder / "checkpoints/step-5");
  EXPECT_THROW(RunFolder(folder.path(), StartMode::fresh), UsageError);
  const std::string message = error_of([&] { RunFolder(folder.path(), StartMode::fresh); });
  EXPECT_TRUE(says(message, "--resume") && says(message, "--overwrite")) << message;
}

TEST(RunFolder, ResumingAMissingRunIsAUsageErrorAndCreatesNothing) {
  const TemporaryFolder folder;
  EXPECT_THROW(RunFolder(folder / "a", StartMode::resume), UsageError);
  EXPECT_TRUE(folder.empty());
}

TEST(RunFolder, OverwriteRemovesTheRunAndNothingElse) {
  const TemporaryFolder folder;
  start_run(folder.path(), StartMode::fresh);
  for (const char* name : {"checkpoints/step-5", "cache", "events", "failed"}) {
    fs::create_directories(folder / name);
  }
  const std::vector<std::string> user_files = {"notes.txt", "cache/x", "mine.spm",
                                               "checkpoints/notes"};
  const std::vector<std::string> run_files = {
      "log.jsonl",          "model.safetensors",          "tokenizer.spm",
      "config.json",        "events.out.tfevents.000001", "events/events.out.tfevents.000001",
      "failed/step-2.json", "checkpoints/step-5/x"};
  for (const auto* names : {&user_files, &run_files}) {
    for (const std::string& name : *names) write_text(folder / name, "x");
  }
  RunFolder overwriting(folder.path(), StartMode::overwrite);
  EXPECT_TRUE(overwriting.last_checkpoint().empty());
  for (const std::string& name : run_files) EXPECT_TRUE(fs::exists(folder / name)) << name;
  overwriting.start();
  for (const std::string& name : user_files) EXPECT_TRUE(fs::exists(folder / name)) << name;
  for (const std::string& name : run_files) EXPECT_FALSE(fs::exists(folder / name)) << name;
  EXPECT_FALSE(fs::exists(folder / "events") || fs::exists(folder / "failed"));
}

TEST(RunFolder, InputsThatWouldBeRemovedAreRejected) {
  const TemporaryFolder folder;
  start_run(folder.path(), StartMode::fresh);
  fs::create_directories(folder / "checkpoints/step-5");
  write_text(folder / "model.safetensors", "x");
  const RunFolder overwriting(folder.path(), StartMode::overwrite);
  for (const char* name : {"model.safetensors", "tokenizer.spm", "checkpoints/step-5/x",
                           "checkpoints/../checkpoints/step-5/source.spm"}) {
    EXPECT_THROW(overwriting.check_not_removed(folder / name, "key"), UsageError) << name;
  }
  for (const char* name : {"mine.spm", "data/log.jsonl", "checkpoints/step-50/x"}) {
    EXPECT_NO_THROW(overwriting.check_not_removed(folder / name, "key")) << name;
  }
}

TEST(RunFolder, AModelNotWrittenByARunIsNeverRemoved) {
  const TemporaryFolder folder;
  write_text(folder / "model.safetensors", "precious");
  for (const StartMode mode : {StartMode::fresh, StartMode::overwrite}) {
    EXPECT_THROW(RunFolder(folder.path(), mode), UsageError);
  }
  EXPECT_EQ(content(folder / "model.safetensors"), "precious");
  EXPECT_EQ(folder.entry_count(), 1);
}

TEST(RunFolder, AFolderWithOtherFilesIsRejectedUnlessTheyAreAllowed) {
  const std::vector<std::string> names = {"log.jsonl", "tokenizer.spm", "notes.txt",
                                          "generation_config.json", "events"};
  for (const std::string& name : names) {
    const TemporaryFolder folder;
    write_text(folder / name, "precious");
    for (const StartMode mode : {StartMode::fresh, StartMode::overwrite}) {
      const std::string message = error_of([&] { RunFolder(folder.path(), mode); });
      EXPECT_TRUE(says(message, "contains '" + name + "', which was not written by a run"))
          << message;
      EXPECT_THROW(RunFolder(folder.path(), mode), UsageError);
    }
    EXPECT_EQ(content(folder / name), "precious");
    EXPECT_EQ(folder.entry_count(), 1);
    const RunFolder with_allowed_file(folder.path(), StartMode::fresh, std::span(&name, 1));
  }
}

TEST(RunFolder, LeftoversOfARunKilledBeforeItStartedAreAccepted) {
  const TemporaryFolder folder;
  write_text(folder / "lock", "");
  write_text(folder / ".nunchi-7-1.tmp", "half");
  fs::create_directories(folder / "cache");
  write_text(folder / "cache/pairs", "took an hour");
  start_run(folder.path(), StartMode::fresh);
  EXPECT_EQ(content(folder / "cache/pairs"), "took an hour");
}

TEST(RunFolder, IsLockedByOneProcessAtATime) {
  const TemporaryFolder folder;
  {
    RunFolder held(folder.path(), StartMode::fresh);
    held.start();
    const std::string message = error_of([&] { RunFolder(folder.path(), StartMode::resume); });
    EXPECT_TRUE(says(message, "is in use by another run")) << message;
    EXPECT_THROW(RunFolder(folder.path(), StartMode::overwrite), Error);
  }
  const RunFolder unlocked(folder.path(), StartMode::resume);
}

TEST(RunFolder, AKilledProcessReleasesTheLock) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    RunFolder held(folder.path(), StartMode::fresh);
    held.start();
    ::raise(SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const RunFolder resumed(folder.path(), StartMode::resume);
}

TEST(RunFolder, TemporaryFilesOfKilledProcessesAreRemoved) {
  const TemporaryFolder folder;
  start_run(folder.path(), StartMode::fresh);
  fs::create_directories(folder / "checkpoints/.nunchi-7-0.tmp/deep");
  write_text(folder / ".nunchi-7-1.tmp", "half");
  fs::create_directories(folder / "checkpoints/step-3");
  const RunFolder resumed(folder.path(), StartMode::resume);
  EXPECT_FALSE(fs::exists(folder / ".nunchi-7-1.tmp"));
  EXPECT_FALSE(fs::exists(folder / "checkpoints/.nunchi-7-0.tmp"));
  EXPECT_TRUE(fs::exists(folder / "checkpoints/step-3"));
}

TEST(RunFolder, AnUnknownFormatIsRejected) {
  const TemporaryFolder folder;
  for (const char* text : {"{\"format\": 2}", "{}", "[", "", "{\"format\": \"x\"}"}) {
    write_text(folder / "run.json", text);
    EXPECT_THROW(RunFolder(folder.path(), StartMode::resume), Error) << text;
  }
}

TEST(RunFolder, AFolderThatCannotBeWrittenIsAnError) {
  const TemporaryFolder folder;
  write_text(folder / "file", "");
  const std::string message = error_of([&] { RunFolder(folder / "file/run", StartMode::fresh); });
  EXPECT_TRUE(says(message, "cannot make the folder")) << message;
}

TEST(AtomicFolder, AppearsWholeOrNotAtAll) {
  const TemporaryFolder folder;
  {
    AtomicFolder abandoned(folder / "a");
    write_text(abandoned.temporary() / "x", "1");
  }
  EXPECT_TRUE(folder.empty());
  AtomicFolder made(folder / "a");
  write_text(made.temporary() / "x", "1");
  EXPECT_FALSE(fs::exists(folder / "a"));
  made.commit();
  EXPECT_EQ(content(folder / "a/x"), "1");
  EXPECT_EQ(folder.entry_count(), 1);
}

TEST(AtomicFolder, ReplacesAnEarlierFolder) {
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
  EXPECT_EQ(folder.entry_count(), 1);
}

// On file systems that cannot exchange folders, a process can be killed between two renames.
TEST(RunFolder, ACheckpointWhoseReplacementWasInterruptedIsRestored) {
  const TemporaryFolder folder;
  RunFolder(folder.path(), StartMode::fresh).start();
  const fs::path checkpoints = folder / "checkpoints";
  fs::create_directories(checkpoints / ".nunchi-replaced-step-4");
  write_text(checkpoints / ".nunchi-replaced-step-4/trainer.json", "earlier");
  fs::create_directories(checkpoints / ".nunchi-replaced-step-6");
  fs::create_directories(checkpoints / "step-6");
  write_text(checkpoints / "step-6/trainer.json", "new");
  const RunFolder run(folder.path(), StartMode::resume);
  EXPECT_EQ(checkpoint_steps(checkpoints), (std::vector<std::int64_t>{4, 6}));
  EXPECT_EQ(content(checkpoints / "step-4/trainer.json"), "earlier");
  EXPECT_EQ(content(checkpoints / "step-6/trainer.json"), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(checkpoints), {}), 2);
}

}  // namespace
}  // namespace nunchi::testing
