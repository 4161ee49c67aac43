// `nunchi demo` in a folder that already exists.
#include <gtest/gtest.h>

#include "tests/cli/conversation.h"
#include "tests/cli/program.h"
#include "tests/errors.h"

namespace nunchi::testing {
namespace {

namespace fs = std::filesystem;

// Starts the demo, waits for a file to appear and sends the signal.
Conversation::End stopped_at(const fs::path& output, const fs::path& file, int signal) {
  Conversation demo({"demo", "--output", output, "--threads", "1"});
  for (int i = 0; i < 60000 && !fs::exists(file); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  demo.send(signal);
  return demo.end();
}

TEST(DemoProgram, RestartsAfterBeingKilled) {
  const TemporaryFolder folder;
  const fs::path output = folder / "demo";
  EXPECT_EQ(stopped_at(output, output, SIGKILL).code, -1);
  EXPECT_EQ(stopped_at(output, output / "data/train.ko", SIGKILL).code, -1);
  fs::remove(output / "data/held-out.ko");
  const Conversation::End stopped = stopped_at(output, output / "data/held-out.ko", SIGTERM);
  EXPECT_EQ(stopped.code, 1);
  EXPECT_TRUE(
      says(stopped.error, "nunchi: stopped before the end; run the same command to start again"))
      << stopped.error;
  EXPECT_FALSE(fs::exists(output / "run.json"));
}

TEST(DemoProgram, RefusesFoldersWithOtherFiles) {
  for (const char* name : {"data/train.ko", "model.safetensors", "notes.txt"}) {
    const TemporaryFolder folder;
    fs::create_directory(folder / "data");
    write_text(folder / name, "mine");
    const ProgramResult refused = run("demo --output " + folder.path().string());
    EXPECT_EQ(refused.code, 2) << refused.error;
    EXPECT_TRUE(says(refused.error, "--output") && !says(refused.error, "--overwrite"))
        << refused.error;
    EXPECT_EQ(content(folder / name), "mine");
  }
}

}  // namespace
}  // namespace nunchi::testing
