// Every system call that creates, writes, syncs or renames a file fails once, each in a run of the
// program of its own: the program reports it in one sentence, what existed before can be used, and
// no temporary files are left.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>

#include "nunchi/training/run/checkpoint.h"
#include "tests/cli/program.h"
#include "tests/cli/small_run.h"

namespace nunchi::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::array<int, 3> kErrors = {EIO, ENOSPC, EROFS};

// The environment with which the program runs under the shim.
struct Fault {
  fs::path folder;  // calls below it are counted
  int call = 0;     // the call that fails; 0: none
  int error = 0;
  bool no_exchange = false;

  std::string environment(const fs::path& log) const {
    return "ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=" NUNCHI_FAULT_SHIM
           " NUNCHI_FAULT_FOLDER=" +
           folder.string() + " NUNCHI_FAULT_CALL=" + std::to_string(call) +
           " NUNCHI_FAULT_ERROR=" + std::to_string(error) + " NUNCHI_FAULT_LOG=" + log.string() +
           (no_exchange ? " NUNCHI_FAULT_NO_EXCHANGE=1" : "");
  }
};

// The names of the calls that the program makes in this folder when none of them fails.
std::vector<std::string> calls_of(const std::string& arguments, Fault fault) {
  const TemporaryFolder folder;
  fault.call = 0;
  const ProgramResult result = run(arguments, fault.environment(folder / "log"));
  EXPECT_EQ(result.code, 0) << result.error;
  std::vector<std::string> calls;
  std::istringstream log(content(folder / "log"));
  for (std::string name; std::getline(log, name);) calls.push_back(name);
  return calls;
}

std::ptrdiff_t temporary_files(const fs::path& folder) {
  std::ptrdiff_t count = 0;
  if (!fs::exists(folder)) return 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    count += entry.path().filename().string().starts_with(".nunchi-");
  }
  return count;
}

// One sentence, the last line of stderr; notes on the progress may come before it.
void expect_one_sentence(const ProgramResult& result, const std::string& what) {
  EXPECT_EQ(result.code, 1) << what << ": " << result.error;
  const std::size_t begin = result.error.find("nunchi: ");
  ASSERT_NE(begin, std::string::npos) << what << ": " << result.error;
  EXPECT_EQ(result.error.find('\n', begin), result.error.size() - 1)
      << what << ": " << result.error;
}

struct Scenario {
  std::string name;
  std::string arguments;
  Fault fault;
  std::function<void()> prepare;  // restores the folder to the state before the command
  // Checks the state after a failure: what existed can be used, and the job can be done.
  std::function<void(const std::string& what)> check;
};

// Runs the scenario once for each call. Different calls get different errors; with all three
// errors for each call if NUNCHI_FAULT_ALL is set.
void fail_each_call(const Scenario& scenario) {
  scenario.prepare();
  const std::vector<std::string> calls = calls_of(scenario.arguments, scenario.fault);
  ASSERT_FALSE(calls.empty());
  std::map<std::string, int> failed;
  const bool all = std::getenv("NUNCHI_FAULT_ALL") != nullptr;
  const TemporaryFolder log;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    for (std::size_t e = 0; e < (all ? kErrors.size() : 1); ++e) {
      Fault fault = scenario.fault;
      fault.call = static_cast<int>(i) + 1;
      fault.error = kErrors[(i + e) % kErrors.size()];
      const std::string what = scenario.name + ", call " + std::to_string(fault.call) + " (" +
                               calls[i] + ") fails with " + std::strerror(fault.error);
      scenario.prepare();
      const ProgramResult result = run(scenario.arguments, fault.environment(log / "log"));
      expect_one_sentence(result, what);
      EXPECT_EQ(temporary_files(fault.folder), 0) << what;
      scenario.check(what);
      if (::testing::Test::HasFailure()) return;
      ++failed[calls[i]];
    }
  }
  std::cout << scenario.name << ":";
  for (const auto& [name, count] : failed) std::cout << " " << count << " " << name;
  std::cout << " calls failed\n";
}

class FailedCalls : public ::testing::Test {
 protected:
  FailedCalls() {
    fs::create_directory(folder_);
    fs::create_directory(small_.folder() / "out");
  }

  SmallRun small_;
  const fs::path folder_ = small_.folder() / "runs";
};

constexpr const char* kShort =
    "--threads 1 --set training.max_steps=4 --set training.log_every=2 --set checkpoints.every=2 "
    "--set checkpoints.keep_last=1 --set checkpoints.average=1 --set checkpoints.keep_best=1 "
    "--set validation.every=4 --set validation.metric=loss --set tokenizer.vocabulary=30 --set "
    "model.width=8 "
    "--set model.heads=1 --set model.feed_forward=8";

TEST_F(FailedCalls, ATrainingRunCanBeResumedOrStartedAgain) {
  const std::string arguments = small_.arguments("runs/run", kShort);
  const ProgramResult reference = run(small_.arguments("reference", kShort));
  ASSERT_EQ(reference.code, 0) << reference.error;
  const std::string expected = content(small_.folder() / "reference/model.safetensors");
  const auto check = [&](const std::string& what) {
    // Every checkpoint can be loaded, and the run ends with the same model.
    for (const std::int64_t step : checkpoint_steps(folder_ / "run/checkpoints")) {
      const fs::path checkpoint = checkpoint_path(folder_ / "run/checkpoints", step);
      const ProgramResult info = run("info " + checkpoint.string());
      EXPECT_EQ(info.code, 0) << what << ": " << info.error;
    }
    ProgramResult again = run(arguments + " --resume");
    if (again.code == 2 && says(again.error, "has no run to resume")) again = run(arguments);
    EXPECT_EQ(again.code, 0) << what << ": " << again.error;
    EXPECT_TRUE(content(folder_ / "run/model.safetensors") == expected) << what;
    EXPECT_EQ(temporary_files(folder_), 0) << what;
  };
  fail_each_call({.name = "train",
                  .arguments = arguments,
                  .fault = {.folder = folder_ / "run"},
                  .prepare = [&] { fs::remove_all(folder_ / "run"); },
                  .check = check});
}

// A run that ended without validation is resumed with it: its last checkpoint is written again.
TEST_F(FailedCalls, ACheckpointIsReplacedWithAndWithoutExchange) {
  const std::string config = content(small_.path("config.yaml"));
  const std::size_t data = config.find("  validation: {source");
  write_text(small_.folder() / "unvalidated.yaml",
             config.substr(0, data) +
                 "training: {batch_tokens: 150, schedule: {learning_rate: 0.003, warmup: 10}}\n");
  const std::string more = " --set output=" + (folder_ / "run").string() +
                           " --set data.root=" + small_.folder().path().string() + " " + kShort;
  const std::string unvalidated = "train " + small_.path("unvalidated.yaml") +
                                  more.substr(0, more.find(" --set checkpoints.keep_best")) +
                                  more.substr(more.find(" --set tokenizer"));
  const std::string arguments = "train " + small_.path("config.yaml") + more + " --resume";
  const ProgramResult first = run(unvalidated);
  ASSERT_EQ(first.code, 0) << first.error;
  fs::copy(folder_ / "run", small_.folder() / "before", fs::copy_options::recursive);
  for (const bool no_exchange : {false, true}) {
    const auto check = [&](const std::string& what) {
      EXPECT_EQ(checkpoint_steps(folder_ / "run/checkpoints"), (std::vector<std::int64_t>{4}))
          << what;
      const ProgramResult again = run(arguments);
      EXPECT_EQ(again.code, 0) << what << ": " << again.error;
      EXPECT_EQ(temporary_files(folder_), 0) << what;
    };
    fail_each_call({.name = no_exchange ? "resume without exchange" : "resume",
                    .arguments = arguments,
                    .fault = {.folder = folder_ / "run", .no_exchange = no_exchange},
                    .prepare =
                        [&] {
                          fs::remove_all(folder_ / "run");
                          fs::copy(small_.folder() / "before", folder_ / "run",
                                   fs::copy_options::recursive);
                        },
                    .check = check});
  }
}

TEST_F(FailedCalls, ATokenizerIsReplacedOrKept) {
  const fs::path output = small_.folder() / "out/a.spm";
  const auto command = [&](int vocabulary) {
    return "tokenizer train -i " + small_.path("train.x") + " -o " + output.string() +
           " --no-byte-fallback --vocab " + std::to_string(vocabulary);
  };
  ASSERT_EQ(run(command(30)).code, 0);
  const std::string before = content(output);
  ASSERT_EQ(run(command(28)).code, 0);
  const std::string after = content(output);
  ASSERT_TRUE(before != after);
  fail_each_call({.name = "tokenizer train",
                  .arguments = command(28),
                  .fault = {.folder = small_.folder() / "out"},
                  .prepare = [&] { write_text(output, before); },
                  .check =
                      [&](const std::string& what) {
                        const std::string now = content(output);
                        EXPECT_TRUE(now == before || now == after) << what;
                      }});
}

TEST_F(FailedCalls, ATranslationIsReplacedOrKept) {
  ASSERT_EQ(run(small_.arguments("run", kShort)).code, 0);
  const fs::path output = small_.folder() / "out/translation";
  const std::string command = "translate " + small_.path("run") + " --threads 1 --max-length 5 " +
                              "--input " + small_.path("val.x") + " --output " + output.string();
  ASSERT_EQ(run(command).code, 0);
  const std::string after = content(output);
  fail_each_call({.name = "translate",
                  .arguments = command,
                  .fault = {.folder = small_.folder() / "out"},
                  .prepare = [&] { write_text(output, "before\n"); },
                  .check =
                      [&](const std::string& what) {
                        const std::string now = content(output);
                        EXPECT_TRUE(now == "before\n" || now == after) << what;
                      }});
}

TEST_F(FailedCalls, AnAverageIsWrittenWholeOrNotAtAll) {
  ASSERT_EQ(run(small_.arguments("run", kShort)).code, 0);
  const fs::path model = small_.folder() / "run/checkpoints/step-4", mean = folder_ / "mean";
  const std::string command =
      "average " + mean.string() + " " + model.string() + " " + model.string();
  fail_each_call({.name = "average",
                  .arguments = command,
                  .fault = {.folder = folder_},
                  .prepare = [&] { fs::remove_all(mean); },
                  .check =
                      [&](const std::string& what) {
                        const ProgramResult usable =
                            run(fs::exists(mean) ? "info " + mean.string() : command);
                        EXPECT_EQ(usable.code, 0) << what << ": " << usable.error;
                      }});
}

}  // namespace
}  // namespace nunchi::testing
