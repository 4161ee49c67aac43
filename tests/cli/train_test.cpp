// `nunchi train`: a run from text to a model, stopped, killed and resumed.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "nunchi/training/checkpoint.h"
#include "nunchi/training/run_folder.h"
#include "tests/cli/program.h"
#include "tests/files.h"
#include "tests/support.h"

namespace nunchi::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

bool says(const std::string& message, std::string_view words) {
  return message.find(words) != std::string::npos;
}

// A corpus of a few made-up words, and a config for it.
class TrainProgram : public ::testing::Test {
 protected:
  TrainProgram() {
    const std::vector<std::string> words = {"eins", "zwei", "drei", "vier", "fünf", "sechs"};
    std::string sources, targets;
    for (int i = 0; i < 160; ++i) {
      std::string source, target;
      for (const double u : random_values<double>(1 + i % 5, 90 + static_cast<std::uint64_t>(i))) {
        const std::string& word = words[static_cast<std::size_t>((u + 1) * 3)];
        source += (source.empty() ? "" : " ") + word;
        target = word + (target.empty() ? "" : " ") + target;
      }
      sources += source + "\n";
      targets += target + "\n";
      if (i == 19) write_validation(sources, targets);
    }
    write_text(folder_ / "train.x", sources);
    write_text(folder_ / "train.y", targets);
    write_text(folder_ / "config.yaml", R"(
output: OUT
seed: 3
model: {family: transformer, encoder_layers: 1, decoder_layers: 1, width: 48, heads: 2,
        feed_forward: 96, dropout: 0.1}
tokenizer: {vocabulary: 40, byte_fallback: false}
data:
  train: {source: train.x, target: train.y}
  validation: {source: val.x, target: val.y}
training: {batch_tokens: 150, accumulate: 2, max_steps: 60, log_every: 10,
           schedule: {learning_rate: 0.003, warmup: 10}}
checkpoints: {every: 5, keep_last: 2, keep_best: 2, average: 2}
validation: {every: 30, metric: bleu}
)");
  }

  std::string arguments(const std::string& run, const std::string& more = "") const {
    return "train " + (folder_ / "config.yaml").string() + " --set output=" + path(run) +
           " --set data.root=" + folder_.path().string() + " " + more;
  }
  std::string path(const std::string& run) const { return (folder_ / run).string(); }

  // Starts the program, waits for a checkpoint of `step` and sends the signal. How it ended.
  int signalled(const std::string& arguments, const fs::path& checkpoint, int signal) const {
    const std::string command =
        "exec " NUNCHI_PROGRAM " " + arguments + " >/dev/null 2>" + path("error");
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    int status = 0;
    while (!fs::exists(checkpoint) && ::waitpid(child, &status, WNOHANG) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ::kill(child, signal);
    ::waitpid(child, &status, 0);
    return status;
  }

  TemporaryFolder folder_;

 private:
  void write_validation(const std::string& sources, const std::string& targets) const {
    write_text(folder_ / "val.x", sources);
    write_text(folder_ / "val.y", targets);
  }
};

// What the log says, without what depends on the clock.
std::vector<Json> timeless_log(const fs::path& run) {
  std::vector<Json> lines;
  std::istringstream text(content(run / "log.jsonl"));
  for (std::string line; std::getline(text, line);) {
    Json json = Json::parse(line);
    json.erase("train/target_tokens_per_second");
    json.erase("train/elapsed_seconds");
    lines.push_back(std::move(json));
  }
  return lines;
}

TEST_F(TrainProgram, KilledStoppedAndResumedItIsTheRunThatNeverStopped) {
  for (const std::string threads : {"1", "2"}) {
    const std::string more = "--threads " + threads + " --set validation.beam_size=2";
    const std::string whole = "whole" + threads, parts = "parts" + threads;
    const Ended ended = run(arguments(whole, more));
    ASSERT_EQ(ended.code, 0) << ended.error;
    EXPECT_TRUE(ended.out.empty()) << ended.out;
    EXPECT_FALSE(says(ended.error, "\r")) << "no moving line outside of a terminal";

    const fs::path checkpoints = folder_ / parts / "checkpoints";
    const int killed = signalled(arguments(parts, more), checkpoints / "step-20", SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGKILL);
    const int stopped =
        signalled(arguments(parts, more + " --resume"), checkpoints / "step-40", SIGINT);
    EXPECT_TRUE(WIFEXITED(stopped) && WEXITSTATUS(stopped) == 0) << content(folder_ / "error");
    EXPECT_TRUE(says(content(folder_ / "error"), "--resume continues"));
    EXPECT_FALSE(fs::exists(folder_ / parts / "model.safetensors"));
    const Ended resumed = run(arguments(parts, more + " --resume"));
    ASSERT_EQ(resumed.code, 0) << resumed.error;
    EXPECT_TRUE(says(resumed.error, "resuming at step ")) << resumed.error;

    for (const char* name :
         {"model.safetensors", "config.json", "tokenizer.spm", "generation_config.json",
          "checkpoints/step-60/model.safetensors", "checkpoints/step-60/optimizer.safetensors"}) {
      EXPECT_FALSE(content(folder_ / whole / name).empty()) << name;
      EXPECT_EQ(content(folder_ / whole / name), content(folder_ / parts / name)) << name;
    }
    EXPECT_EQ(timeless_log(folder_ / whole), timeless_log(folder_ / parts));
  }
}

TEST_F(TrainProgram, LeavesAModelThatTranslates) {
  const Ended trained = run(arguments("run", "--set training.max_steps=10"));
  ASSERT_EQ(trained.code, 0) << trained.error;
  EXPECT_TRUE(says(trained.error, "160 lines: 160 pairs kept")) << trained.error;
  EXPECT_TRUE(says(trained.error, "step 10: validation loss")) << trained.error;
  const Ended translated =
      run("translate " + path("run") + " --input " + (folder_ / "val.x").string());
  ASSERT_EQ(translated.code, 0) << translated.error;
  EXPECT_EQ(std::count(translated.out.begin(), translated.out.end(), '\n'), 20);
  const Json last = timeless_log(folder_ / "run").back();
  EXPECT_TRUE(last.contains("validation/bleu") && last.contains("validation/chrf")) << last;

  const Ended averaged = run("average " + path("mean") + " " + path("run/checkpoints/step-5") +
                             " " + path("run/checkpoints/step-10"));
  ASSERT_EQ(averaged.code, 0) << averaged.error;
  EXPECT_EQ(run("info " + path("mean")).code, 0);
  EXPECT_EQ(run("average " + path("mean") + " " + path("run/checkpoints/step-5")).code, 2);

  const Ended resized = run(arguments("run", "--resume --set model.feed_forward=64"));
  EXPECT_EQ(resized.code, 1);
  EXPECT_TRUE(says(resized.error, "is a checkpoint of another shape")) << resized.error;

  const Ended continued =
      run(arguments("other", "--set training.max_steps=3 --set initialize_from=" + path("run")));
  EXPECT_EQ(continued.code, 0) << continued.error;
  EXPECT_EQ(content(folder_ / "other/tokenizer.spm"), content(folder_ / "run/tokenizer.spm"));
}

TEST_F(TrainProgram, RefusesWhatDoesNotFitTheFolder) {
  EXPECT_EQ(run(arguments("run", "--resume")).code, 2);
  EXPECT_EQ(run(arguments("run", "--resume --overwrite")).code, 2);
  EXPECT_FALSE(fs::exists(folder_ / "run"));
  {
    const RunFolder held(folder_ / "run", RunFolder::Begin::fresh);
    const Ended second = run(arguments("run", "--resume"));
    EXPECT_EQ(second.code, 1);
    EXPECT_TRUE(says(second.error, "is in use by another run")) << second.error;
  }
  const Ended again = run(arguments("run"));
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(says(again.error, "--overwrite")) << again.error;
  EXPECT_EQ(run(arguments("run", "--overwrite --set training.max_steps=1")).code, 0);
  EXPECT_EQ(checkpoint_steps(folder_ / "run/checkpoints"), (std::vector<std::int64_t>{1}));
}

TEST_F(TrainProgram, ADryRunLeavesTheOutputFolderAlone) {
  const Ended dry = run(arguments("run", "--dry-run"));
  ASSERT_EQ(dry.code, 0) << dry.error;
  for (const char* word :
       {"parameters", "MiB", "steps an epoch", "target tokens/s", "steps in all         60"}) {
    EXPECT_TRUE(says(dry.out, word)) << dry.out;
  }
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(TrainProgram, TheDumpedConfigIsTheConfig) {
  const Ended first = run(arguments("run", "--dump-config --set seed=9"));
  ASSERT_EQ(first.code, 0) << first.error;
  EXPECT_TRUE(says(first.out, "seed: 9")) << first.out;
  write_text(folder_ / "dumped.yaml", first.out);
  EXPECT_EQ(run("train " + path("dumped.yaml") + " --dump-config").out, first.out);
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(TrainProgram, BadConfigsAndDataAreOneSentence) {
  const Ended unknown = run(arguments("run", "--set training.max_step=3"));
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(says(unknown.error, "training.max_steps")) << unknown.error;
  EXPECT_EQ(run("train " + path("nothing.yaml")).code, 1);
  write_text(folder_ / "val.y", "one line\n");
  const Ended unequal = run(arguments("run"));
  EXPECT_EQ(unequal.code, 1);
  EXPECT_TRUE(says(unequal.error, "val.")) << unequal.error;
}

}  // namespace
}  // namespace nunchi::testing
