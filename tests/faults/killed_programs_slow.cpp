// The program is killed at random moments, again and again: a training run that is resumed until it
// ends gives the model of an uninterrupted run, and an output file is the earlier or the new one.
//
// NUNCHI_KILLS sets the number of kills for each test, 40 by default.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <random>
#include <sstream>
#include <thread>

#include "nunchi/training/run/checkpoint.h"
#include "tests/cli/program.h"
#include "tests/cli/small_run.h"

namespace nunchi::testing {
namespace {

namespace fs = std::filesystem;
using Seconds = std::chrono::duration<double>;

int kills() {
  const char* text = std::getenv("NUNCHI_KILLS");
  return text == nullptr ? 40 : std::atoi(text);
}

// Starts the program and kills it after this time. Returns its exit code; -1 if it was killed.
int run_and_kill(const std::string& arguments, Seconds after, const fs::path& error) {
  std::vector<std::string> words = {NUNCHI_PROGRAM};
  std::istringstream in(arguments);
  for (std::string word; in >> word;) words.push_back(word);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int file : {STDIN_FILENO, STDOUT_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, file, "/dev/null", O_RDWR, 0);
  }
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, error.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = -1;
  EXPECT_EQ(::posix_spawn(&child, NUNCHI_PROGRAM, &actions, nullptr, argv.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  const auto end = std::chrono::steady_clock::now() + after;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= end) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// How long the program takes when it is not killed.
Seconds time_of(const std::string& arguments) {
  const auto start = std::chrono::steady_clock::now();
  const ProgramResult result = run(arguments);
  EXPECT_EQ(result.code, 0) << result.error;
  return std::chrono::steady_clock::now() - start;
}

std::ptrdiff_t temporary_files(const fs::path& folder) {
  std::ptrdiff_t count = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    count += entry.path().filename().string().starts_with(".nunchi-");
  }
  return count;
}

class RandomTime {
 public:
  explicit RandomTime(Seconds limit) : limit_(limit) {}
  Seconds operator()() { return limit_ * std::uniform_real_distribution<double>(0, 1.1)(random_); }

 private:
  Seconds limit_;
  std::mt19937 random_{7};
};

TEST(KilledPrograms, AResumedRunIsTheRunThatNeverStopped) {
  const SmallRun small;
  const std::string more =
      "--threads 1 --set training.max_steps=24 --set checkpoints.every=2 "
      "--set validation.every=8 --set validation.metric=loss";
  RandomTime time(time_of(small.arguments("whole", more)));
  const std::string expected = content(small.folder() / "whole/model.safetensors");
  const fs::path folder = small.folder() / "run";
  int killed = 0, finished = 0, resumed = 0;
  while (killed < kills()) {
    const bool resume = fs::exists(folder / "run.json");
    resumed += resume;
    const int code = run_and_kill(small.arguments("run", more + (resume ? " --resume" : "")),
                                  time(), small.folder() / "error");
    if (code < 0) {
      ++killed;
      continue;
    }
    ASSERT_EQ(code, 0) << content(small.folder() / "error");
    ASSERT_TRUE(content(folder / "model.safetensors") == expected);
    ASSERT_EQ(temporary_files(folder), 0);
    ++finished;
    fs::remove_all(folder);
  }
  EXPECT_GT(finished, killed / 20);
  std::cout << "train: " << killed << " kills, " << resumed << " runs resumed, " << finished
            << " runs finished with the model of the uninterrupted run\n";
}

// Kills a command that writes `output`, which must be one of the two contents at any time.
void kill_writer(const std::string& name, const std::string& command, const fs::path& output,
                 const std::string& before) {
  RandomTime time(time_of(command));
  const std::string after = content(output);
  ASSERT_TRUE(before != after);
  write_text(output, before);
  int killed = 0, finished = 0;
  while (killed < kills()) {
    const int code = run_and_kill(command, time(), output.parent_path().parent_path() / "error");
    const std::string now = content(output);
    ASSERT_TRUE(now == before || now == after) << name << ", " << now.size() << " bytes";
    // Each run removes the files of earlier ones. A child process of the last one, which is killed
    // with it, can still hold the lock of its file for a moment.
    ASSERT_LE(temporary_files(output.parent_path()), 2) << name;
    if (code < 0) {
      ++killed;
    } else {
      ASSERT_EQ(code, 0);
      ASSERT_TRUE(now == after);
      ASSERT_LE(temporary_files(output.parent_path()), 1) << name;
      ++finished;
    }
    if (now == after) write_text(output, before);
  }
  std::cout << name << ": " << killed << " kills, " << finished << " runs finished\n";
}

TEST(KilledPrograms, ATokenizerIsReplacedOrKept) {
  const SmallRun small;
  fs::create_directory(small.folder() / "out");
  const fs::path output = small.folder() / "out/a.spm";
  kill_writer("tokenizer train",
              "tokenizer train -i " + small.path("train.x") + " -o " + output.string() +
                  " --no-byte-fallback --kind unigram --vocab 22",
              output, "before");
}

TEST(KilledPrograms, ATranslationIsReplacedOrKept) {
  const SmallRun small;
  fs::create_directory(small.folder() / "out");
  ASSERT_EQ(run(small.arguments("run", "--threads 1 --set training.max_steps=3")).code, 0);
  const fs::path output = small.folder() / "out/lines";
  kill_writer("translate",
              "translate " + small.path("run") + " --threads 1 --max-length 5 --input " +
                  small.path("train.x") + " --output " + output.string(),
              output, "before");
}

}  // namespace
}  // namespace nunchi::testing
