// Files that are truncated, replaced, removed or overwritten while the program uses them.
#include <algorithm>
#include <chrono>
#include <functional>
#include <random>
#include <sstream>
#include <thread>

#include "nunchi/training/run/checkpoint.h"
#include "tests/cli/conversation.h"
#include "tests/cli/program.h"
#include "tests/cli/small_run.h"
#include "tests/inference/small_translation.h"

namespace nunchi::testing {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

bool wait_until(const std::function<bool()>& holds) {
  for (int i = 0; i < 30'000 && !holds(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return holds();
}

// A training run without end, damaged after its first checkpoint.
class DamagedRun : public ::testing::Test {
 protected:
  static constexpr const char* kEndless =
      "--threads 1 --set training.max_steps=1000000 --set validation.every=0";

  // Waits for a checkpoint that is newer than all others.
  void wait_for_checkpoint() {
    const std::vector<std::int64_t> steps = checkpoint_steps(checkpoints());
    const std::int64_t last = steps.empty() ? 0 : steps.back();
    ASSERT_TRUE(wait_until([&] {
      const std::vector<std::int64_t> now = checkpoint_steps(checkpoints());
      return !now.empty() && now.back() > last;
    }));
  }
  fs::path checkpoints() const { return small_.folder() / "run/checkpoints"; }
  // The cached pairs of the training data.
  fs::path cache() const {
    fs::path largest;
    for (const auto& entry : fs::directory_iterator(small_.folder() / "run/cache")) {
      if (largest.empty() || entry.file_size() > fs::file_size(largest)) largest = entry.path();
    }
    return largest;
  }

  // Expects that the run ends with this error, and that it can be resumed at the step it names.
  void expect_end(Conversation& program, const std::string& because) {
    const Conversation::End end = program.end();
    EXPECT_EQ(end.code, 1) << end.error;
    EXPECT_TRUE(says(end.error, "nunchi: ")) << end.error;
    EXPECT_TRUE(says(end.error, because)) << end.error;
    const std::vector<std::int64_t> steps = checkpoint_steps(checkpoints());
    ASSERT_FALSE(steps.empty());
    const std::string step = std::to_string(steps.back());
    EXPECT_TRUE(says(end.error, "; --resume continues at step " + step + ".\n")) << end.error;
    const ProgramResult resumed = run(small_.arguments(
        "run", "--resume --threads 1 --set validation.every=0 " +
                   ("--set training.max_steps=" + std::to_string(steps.back() + 3))));
    EXPECT_EQ(resumed.code, 0) << resumed.error;
    EXPECT_TRUE(says(resumed.error, "resuming at step " + step)) << resumed.error;
    EXPECT_FALSE(says(resumed.error, "have changed")) << resumed.error;
  }
  // Expects that the run continues.
  void expect_no_effect(Conversation& program) {
    wait_for_checkpoint();
    wait_for_checkpoint();
    program.send(SIGTERM);
    const Conversation::End end = program.end();
    EXPECT_EQ(end.code, 0) << end.error;
    EXPECT_TRUE(says(end.error, "stopped after writing a checkpoint")) << end.error;
  }

  SmallRun small_;
};

TEST_F(DamagedRun, EndsWithASentenceWhenItsDataAreCutShort) {
  Conversation program(words_of(small_.arguments("run", kEndless)));
  wait_for_checkpoint();
  fs::resize_file(cache(), 100);
  expect_end(program, "it was cut short while it was in use");
}

TEST_F(DamagedRun, EndsWithASentenceWhenItsDataAreOverwritten) {
  Conversation program(words_of(small_.arguments("run", kEndless)));
  wait_for_checkpoint();
  // Tokens of the vocabulary, so that only the digest can reveal the change.
  std::fstream file(cache(), std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(64);
  for (int i = 0; i < 100; ++i) file.write("\5\0\0\0", 4);
  file.close();
  expect_end(program, "was overwritten while it was in use and is damaged");
}

TEST_F(DamagedRun, ContinuesWhenItsDataAreRemovedReplacedOrTouched) {
  Conversation program(words_of(small_.arguments("run", kEndless)));
  wait_for_checkpoint();
  const fs::path file = cache();
  fs::last_write_time(file, fs::file_time_type::clock::now());
  wait_for_checkpoint();
  write_text(small_.folder() / "other", "not a file of pairs");
  fs::rename(small_.folder() / "other", file);
  wait_for_checkpoint();
  fs::remove(file);
  expect_no_effect(program);
}

class DamagedModel : public ::testing::Test {
 protected:
  DamagedModel() {
    TransformerConfig config = small_config();
    config.feed_forward = 1 << 15;  // large files take some time to load
    SmallTranslation(byte_tokenizer(), config).save(model_.path());
    write_text(input_ / "lines", "a dog\nthe old fox\n");
  }

  TemporaryFolder model_, input_;
};

// Whenever the file changes, the program translates or reports the problem in one sentence.
TEST_F(DamagedModel, LoadingNeverCrashes) {
  const fs::path weights = model_.path() / "model.safetensors";
  const std::string whole = content(weights);
  const std::vector<std::function<void()>> damages = {
      [&] { fs::resize_file(weights, 4096); },
      [&] { fs::resize_file(weights, whole.size() / 2); },
      [&] { write_text(weights, std::string(whole.size(), 'x')); },
      [&] { fs::remove(weights); },
  };
  std::mt19937 random(1);
  int translated = 0, refused = 0;
  for (int i = 0; i < 24; ++i) {
    fs::remove(weights);
    write_text(weights, whole);
    Conversation program({"translate", model_.path().string(), "--input",
                          (input_ / "lines").string(), "--threads", "1", "--max-length", "2"});
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 120));
    damages[static_cast<std::size_t>(i) % damages.size()]();
    const Conversation::End end = program.end();
    ASSERT_TRUE(end.code == 0 || end.code == 1) << end.code << ": " << end.error;
    if (end.code == 0) {
      ++translated;
      continue;
    }
    ++refused;
    EXPECT_TRUE(end.error.starts_with("nunchi: ")) << end.error;
    EXPECT_TRUE(says(end.error, "model.safetensors")) << end.error;
    EXPECT_EQ(std::ranges::count(end.error, '\n'), 1) << end.error;
  }
  EXPECT_EQ(translated + refused, 24);
}

TEST_F(DamagedModel, ALoadedModelNeedsItsFilesNoMore) {
  Conversation program(
      {"translate", model_.path().string(), "--threads", "1", "--max-length", "4"});
  ASSERT_TRUE(program.write("a dog\n"));
  const std::string answer = program.read_line();
  for (const fs::directory_entry& entry : fs::directory_iterator(model_.path())) {
    fs::resize_file(entry.path(), 10);
    write_text(entry.path(), "x");
  }
  ASSERT_TRUE(program.write("a dog\n"));
  EXPECT_EQ(program.read_line(), answer);
  fs::remove_all(model_.path());
  ASSERT_TRUE(program.write("a dog\n"));
  EXPECT_EQ(program.read_line(), answer);
  program.finish_writing();
  EXPECT_EQ(program.end().code, 0);
}

}  // namespace
}  // namespace nunchi::testing
