// `nunchi train`: runs from text to a model; stopping, killing and resuming them.
#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "nunchi/training/run/checkpoint.h"
#include "nunchi/training/run/run_folder.h"
#include "tests/cli/conversation.h"
#include "tests/cli/program.h"
#include "tests/cli/small_run.h"
#include "tests/files.h"
#include "tests/paths.h"
#include "tests/support.h"

namespace nunchi::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

class TrainProgram : public ::testing::Test {
 protected:
  std::string arguments(const std::string& run, const std::string& more = "") const {
    return small_.arguments(run, more);
  }
  std::string path(const std::string& run) const { return small_.path(run); }

  // Starts the program, waits until `checkpoint` exists, sends the signal and returns the exit
  // status.
  int status_after_signal(const std::string& arguments, const fs::path& checkpoint,
                          int signal) const {
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

  SmallRun small_;
  const TemporaryFolder& folder_ = small_.folder();
};

// The log without the values that depend on time.
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

TEST_F(TrainProgram, AFinishedRunStoresItsTypicalScores) {
  const auto config_of = [&](const fs::path& folder) {
    return Json::parse(content(folder / "generation_config.json"));
  };
  const ProgramResult result =
      run(arguments("run", "--set 'data.validation={source: train.x, target: train.y}'"));
  ASSERT_EQ(result.code, 0) << result.error;
  const Json scores = config_of(folder_ / "run").at("typical_scores");
  EXPECT_LE(scores.at("percentile_1"), scores.at("median"));
  EXPECT_LT(scores.at("median"), 0);
  EXPECT_FALSE(config_of(folder_ / "run/checkpoints/step-60").contains("typical_scores"));
  // The validation data are usual text for the model.
  const ProgramResult translated =
      run("translate " + path("run"), "", (folder_ / "train.x").string());
  EXPECT_FALSE(says(translated.error, "far less likely")) << translated.error;

  // 20 lines are too few.
  ASSERT_EQ(run(arguments("few")).code, 0);
  EXPECT_FALSE(config_of(folder_ / "few").contains("typical_scores"));
}

TEST_F(TrainProgram, AResumedRunEqualsAnUninterruptedOne) {
  for (const std::string threads : {"1", "2"}) {
    const std::string more = "--threads " + threads + " --set validation.beam_size=2";
    const std::string whole = "whole" + threads, parts = "parts" + threads;
    const ProgramResult result = run(arguments(whole, more));
    ASSERT_EQ(result.code, 0) << result.error;
    EXPECT_TRUE(result.out.empty()) << result.out;
    EXPECT_FALSE(says(result.error, "\r")) << "no progress line outside of a terminal";

    const fs::path checkpoints = folder_ / parts / "checkpoints";
    const int killed =
        status_after_signal(arguments(parts, more), checkpoints / "step-20", SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGKILL);
    const int stopped =
        status_after_signal(arguments(parts, more + " --resume"), checkpoints / "step-40", SIGINT);
    EXPECT_TRUE(WIFEXITED(stopped) && WEXITSTATUS(stopped) == 0) << content(folder_ / "error");
    EXPECT_TRUE(says(content(folder_ / "error"), "--resume continues"));
    EXPECT_FALSE(fs::exists(folder_ / parts / "model.safetensors"));
    const ProgramResult resumed = run(arguments(parts, more + " --resume"));
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

TEST_F(TrainProgram, TrainsRecurrentModelsThatTranslate) {
  for (const std::string attention : {"none", "additive", "dot"}) {
    const std::string run_name = "rnn-" + attention;
    std::string config = content(folder_ / "config.yaml");
    const std::size_t begin = config.find("model:"), end = config.find("tokenizer:");
    config.replace(begin, end - begin,
                   "model: {family: rnn, cell: lstm, encoder_layers: 1, decoder_layers: 1, width: "
                   "48, attention: " +
                       attention + ", free_running: 0.25}\n");
    write_text(folder_ / (run_name + ".yaml"), config);
    const ProgramResult trained =
        run("train " + path(run_name + ".yaml") + " --set output=" + path(run_name) +
            " --set data.root=" + folder_.path().string() + " --set training.max_steps=10");
    ASSERT_EQ(trained.code, 0) << trained.error;
    const ProgramResult translated = run("translate " + path(run_name) + " --beam-size 3 --input " +
                                         (folder_ / "val.x").string());
    ASSERT_EQ(translated.code, 0) << translated.error;
    EXPECT_EQ(std::count(translated.out.begin(), translated.out.end(), '\n'), 20);
    const ProgramResult about = run("info " + path(run_name) + " --json");
    ASSERT_EQ(about.code, 0) << about.error;
    EXPECT_EQ(Json::parse(about.out)["family"], "rnn");
    const ProgramResult aligned =
        run("translate " + path(run_name) + " --alignment --input " + (folder_ / "val.x").string());
    EXPECT_EQ(aligned.code, attention == "none" ? 1 : 0) << aligned.error;
    if (attention == "none") {
      EXPECT_TRUE(says(aligned.error, "alignments need cross-attention")) << aligned.error;
    }
  }
}

TEST_F(TrainProgram, TheTrainedModelTranslates) {
  const ProgramResult trained = run(arguments("run", "--set training.max_steps=10"));
  ASSERT_EQ(trained.code, 0) << trained.error;
  EXPECT_TRUE(says(trained.error, "160 lines: 160 pairs kept")) << trained.error;
  EXPECT_TRUE(says(trained.error, "step 10: validation loss")) << trained.error;
  const ProgramResult translated =
      run("translate " + path("run") + " --input " + (folder_ / "val.x").string());
  ASSERT_EQ(translated.code, 0) << translated.error;
  EXPECT_EQ(std::count(translated.out.begin(), translated.out.end(), '\n'), 20);
  EXPECT_TRUE(says(trained.error, "\nmodel: step 10: BLEU ")) << trained.error;
  const ProgramResult info = run("info " + path("run"));
  EXPECT_TRUE(says(info.out, "\nweights                 step 10: BLEU ")) << info.out;
  const Json weights = Json::parse(run("info " + path("run") + " --json").out)["weights"];
  EXPECT_EQ(weights["kind"], "step");
  EXPECT_EQ(weights["steps"], Json({10}));
  EXPECT_EQ(weights["metric"], "bleu");
  const Json logged = timeless_log(folder_ / "run").back();
  EXPECT_TRUE(logged.contains("validation/bleu") && logged.contains("validation/chrf")) << logged;

  const ProgramResult averaged =
      run("average " + path("mean") + " " + path("run/checkpoints/step-5") + " " +
          path("run/checkpoints/step-10"));
  ASSERT_EQ(averaged.code, 0) << averaged.error;
  EXPECT_EQ(run("info " + path("mean")).code, 0);
  EXPECT_EQ(run("average " + path("mean") + " " + path("run/checkpoints/step-5")).code, 2);

  const ProgramResult last = run("average " + path("last") + " " + path("run") + " --last 2");
  ASSERT_EQ(last.code, 0) << last.error;
  EXPECT_TRUE(says(last.error, "the average of 2 models (step-10, step-5) is in ")) << last.error;
  EXPECT_EQ(content(folder_ / "last/model.safetensors"),
            content(folder_ / "mean/model.safetensors"));
  const ProgramResult best = run("average " + path("best") + " " + path("run") + " --best 1");
  ASSERT_EQ(best.code, 0) << best.error;
  EXPECT_EQ(content(folder_ / "best/model.safetensors"),
            content(folder_ / "run/model.safetensors"));
  const std::string other = " " + path("other") + " ";
  for (const auto& [wrong, code, why] :
       {std::tuple{path("run") + " --best 2", 1, "run' has 1 validated checkpoint, not 2."},
        {path("run") + " --last 3", 1, "run' has 2 checkpoints, not 3."},
        {path("mean") + " --last 1", 1, "mean' is not a run with checkpoints."},
        {path("run") + other + " --last 1", 2, "of one run, but 2 folders were given."},
        {path("run") + " --last 1 --best 1", 2, "--last excludes --best"},
        {path("run") + " --last 0", 2, "a whole number from 1 to 10000"}}) {
    const ProgramResult result = run("average" + other + wrong);
    EXPECT_EQ(result.code, code) << wrong << result.error;
    EXPECT_TRUE(says(result.error, why)) << result.error;
  }

  // These options change what the model computes, even if no shape changes.
  for (const std::string option : {"feed_forward=64", "activation=gelu", "position=rotary"}) {
    const ProgramResult result = run(arguments("run", "--resume --set model." + option));
    EXPECT_EQ(result.code, 1) << option;
    EXPECT_TRUE(says(result.error, "step-10' cannot be resumed with this config: its '" +
                                       option.substr(0, option.find('=')) + "' is "))
        << result.error;
  }

  // A resumed run keeps its tokenizers, so the config may not ask for others.
  const ProgramResult tokens =
      run(arguments("run", "--resume --set tokenizer.kind=unigram --set training.max_steps=12"));
  EXPECT_EQ(tokens.code, 1);
  EXPECT_TRUE(says(tokens.error,
                   "its 'tokenizer.kind' is bpe, but the run's is unigram, and a run must keep the "
                   "tokenizers that it started with."))
      << tokens.error;
  const ProgramResult longer =
      run(arguments("run", "--resume --set training.max_steps=12 --set seed=4"));
  EXPECT_EQ(longer.code, 0) << longer.error;
  EXPECT_TRUE(says(longer.error,
                   "config.yaml ('seed', 'training.max_steps'); the run continues with the new "
                   "one"))
      << longer.error;

  const ProgramResult continued =
      run(arguments("other", "--set training.max_steps=3 --set initialize_from=" + path("run")));
  EXPECT_EQ(continued.code, 0) << continued.error;
  EXPECT_EQ(content(folder_ / "other/tokenizer.spm"), content(folder_ / "run/tokenizer.spm"));
}

// The vocabulary has the same size but other tokens, so an embedding would belong to another token.
TEST_F(TrainProgram, InitializingNeedsAModelWithTheSameTokenizer) {
  const std::string characters = "--set training.max_steps=1 --set 'tokenizer={kind: characters}' ";
  ASSERT_EQ(run(arguments("run", characters)).code, 0);
  const std::string tokens = content(folder_ / "run/tokenizer.tok");
  write_text(folder_ / "same.tok", tokens);
  std::string others = tokens;
  const std::size_t last = others.rfind('\n', others.size() - 2) + 1;
  write_text(folder_ / "other.tok", others.replace(last, others.size() - last, "AC00\n"));
  const auto started = [&](const std::string& tokenizer) {
    return run(arguments("other", "--overwrite --set training.max_steps=1 --set initialize_from=" +
                                      path("run") + " --set tokenizer.source=" + path(tokenizer)));
  };
  const ProgramResult refused = started("other.tok");
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(says(refused.error, "run' cannot be used to start the run: token ")) << refused.error;
  EXPECT_TRUE(says(refused.error,
                   " of its tokenizer is 'ü', but the run's is '가'. Leave 'tokenizer.source' "))
      << refused.error;
  EXPECT_FALSE(says(refused.error, "tokenising")) << refused.error;
  const ProgramResult same = started("same.tok");
  EXPECT_EQ(same.code, 0) << same.error;
  // Without a tokenizer in the model folder, the tokens cannot be compared.
  fs::remove(folder_ / "run/tokenizer.tok");
  const ProgramResult unchecked = started("other.tok");
  EXPECT_EQ(unchecked.code, 0) << unchecked.error;
}

// Each error is found before anything is learned or tokenised.
TEST_F(TrainProgram, FindsErrorsBeforeTokenising) {
  write_text(folder_ / "short.y", "eins\n");
  const std::string sizes =
      "--set model.width=16384 --set model.heads=64 --set model.feed_forward=65536 "
      "--set model.encoder_layers=200 --set model.decoder_layers=200";
  for (const auto& [more, what] :
       {std::pair<std::string, std::string>{sizes, "parameters needs "},
        {"--set data.validation.target=short.y", "short.y has 1 line but"},
        {"--set data.train.first_line=500", "train.x has 160 lines, but 'first_line' is 500."}}) {
    const ProgramResult result = run(arguments("run", more));
    EXPECT_EQ(result.code, 1) << more;
    EXPECT_TRUE(says(result.error, what)) << result.error;
    EXPECT_FALSE(says(result.error, "tokenising")) << result.error;
  }
}

TEST_F(TrainProgram, ADamagedCheckpointIsReportedWithARemedy) {
  ASSERT_EQ(run(arguments("run", "--set training.max_steps=10")).code, 0);
  write_text(folder_ / "run/checkpoints/step-10/optimizer.safetensors", "damaged");
  const ProgramResult result = run(arguments("run", "--resume --set training.max_steps=20"));
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(
      says(result.error, "Remove " + path("run/checkpoints/step-10") + " to resume at step 5."))
      << result.error;
  fs::remove(folder_ / "run/config.json");
  const ProgramResult info = run("info " + path("run"));
  EXPECT_TRUE(says(info.error, "each folder in " + path("run/checkpoints") + " is a model."))
      << info.error;
}

TEST_F(TrainProgram, NeverRemovesFilesOfTheUser) {
  fs::create_directory(folder_ / "mine");
  const std::vector<std::string> names = {"log.jsonl", "tokenizer.spm", "generation_config.json"};
  for (const std::string& name : names) write_text(folder_ / "mine" / name, "precious");
  for (const std::string more : {"", "--overwrite", "--dry-run"}) {
    const ProgramResult result = run(arguments("mine", more));
    EXPECT_EQ(result.code, 2) << more;
    EXPECT_TRUE(says(result.error, "mine' contains '")) << result.error;
  }
  for (const std::string& name : names) EXPECT_EQ(content(folder_ / "mine" / name), "precious");
}

TEST_F(TrainProgram, AnExistingRunNeedsResumeOrOverwrite) {
  EXPECT_EQ(run(arguments("run", "--resume")).code, 2);
  EXPECT_EQ(run(arguments("run", "--resume --overwrite")).code, 2);
  EXPECT_FALSE(fs::exists(folder_ / "run"));
  {
    RunFolder held(folder_ / "run", RunFolder::StartMode::fresh);
    held.start();
    fs::create_directory(folder_ / "run/checkpoints/step-1");
    const ProgramResult second = run(arguments("run", "--resume"));
    EXPECT_EQ(second.code, 1);
    EXPECT_TRUE(says(second.error, "is in use by another run")) << second.error;
  }
  const ProgramResult again = run(arguments("run"));
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(says(again.error, "--overwrite")) << again.error;
  EXPECT_EQ(run(arguments("run", "--overwrite --set training.max_steps=1")).code, 0);
  EXPECT_EQ(checkpoint_steps(folder_ / "run/checkpoints"), (std::vector<std::int64_t>{1}));
}

// Expects that the folder has at most complete files of prepared data.
void expect_clean(const fs::path& run) {
  if (!fs::exists(run)) return;
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    const std::string name = fs::relative(entry.path(), run).string();
    EXPECT_TRUE(name == "cache" || (name.starts_with("cache/pairs-") && name.ends_with(".bin")))
        << name;
  }
}

TEST_F(TrainProgram, AFailedStartDoesNotBlockTheNextRun) {
  write_text(folder_ / "empty", "");
  const std::string train = "--set data.train.";
  for (const auto& [wrong, says_why] :
       {std::pair{train + "source=val.x", std::string("but ")},
        {train + "source=empty " + train + "target=empty", path("empty")},
        {"--set tokenizer.vocabulary=4000", "too small for a vocabulary"},
        {"--set tokenizer.source=nowhere.spm", "nowhere.spm"},
        {"--set initialize_from=nowhere", "there is no such folder"},
        {"--set data.validation.target=train.y", "val.x"}}) {
    const ProgramResult failed = run(arguments("run", wrong));
    EXPECT_EQ(failed.code, 1) << failed.error;
    EXPECT_TRUE(says(failed.error, says_why)) << failed.error;
    expect_clean(folder_ / "run");
  }
  const ProgramResult right = run(arguments("run", "--set training.max_steps=1"));
  EXPECT_EQ(right.code, 0) << right.error;
}

TEST_F(TrainProgram, OverwriteKeepsTheEarlierRunUntilTheNewOneStarts) {
  ASSERT_EQ(run(arguments("run", "--set training.max_steps=2")).code, 0);
  const std::string weights = content(folder_ / "run/model.safetensors");
  fs::copy(folder_ / "run/tokenizer.spm", folder_ / "run/mine.spm");
  for (const std::string wrong :
       {"--set data.train.source=val.x", "--set tokenizer.vocabulary=4000",
        "--set tokenizer.source=nowhere.spm", "--set initialize_from=nowhere"}) {
    EXPECT_EQ(run(arguments("run", "--overwrite " + wrong)).code, 1) << wrong;
  }
  // Files that the new run starts from are not removed either.
  for (const std::string& input :
       {"initialize_from=" + path("run"), "initialize_from=" + path("run/checkpoints/step-2"),
        "tokenizer.source=" + path("run/tokenizer.spm")}) {
    const ProgramResult refused = run(arguments("run", "--overwrite --set " + input));
    EXPECT_EQ(refused.code, 2) << input;
    EXPECT_TRUE(says(refused.error, "would be removed")) << refused.error;
  }
  EXPECT_EQ(content(folder_ / "run/model.safetensors"), weights);
  EXPECT_EQ(checkpoint_steps(folder_ / "run/checkpoints"), (std::vector<std::int64_t>{2}));
  const ProgramResult again =
      run(arguments("run", "--overwrite --set training.max_steps=1 --set seed=9 " +
                               ("--set tokenizer.source=" + path("run/mine.spm"))));
  EXPECT_EQ(again.code, 0) << again.error;
  EXPECT_TRUE(fs::exists(folder_ / "run/mine.spm"));
  EXPECT_EQ(checkpoint_steps(folder_ / "run/checkpoints"), (std::vector<std::int64_t>{1}));
  EXPECT_NE(content(folder_ / "run/model.safetensors"), weights);
}

TEST_F(TrainProgram, StoppingDuringPreparationLeavesNoFiles) {
  std::string many;
  for (int i = 0; i < 400'000; ++i) many += "eins zwei drei vier\n";
  for (const char* name : {"many.x", "many.y"}) write_text(folder_ / name, many);
  const std::string more =
      "--threads 1 --set data.train.source=many.x --set data.train.target=many.y "
      "--set tokenizer.max_lines=1000 --set tokenizer.vocabulary=24";
  for (const int signal : {SIGINT, SIGTERM}) {
    const int status = status_after_signal(arguments("run", more), folder_ / "run/cache", signal);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
    const std::string message = content(folder_ / "error");
    EXPECT_TRUE(says(message, "nunchi: stopped before training began")) << message;
    EXPECT_FALSE(fs::exists(folder_ / "run"));
  }
}

// Learning a tokenizer from this text takes much longer than the test.
TEST_F(TrainProgram, StoppingWhileATokenizerIsLearnedTakesOnlyAMoment) {
  std::string text;
  std::mt19937 random(1);
  for (int line = 0; line < 60'000; ++line) {
    for (int word = 0; word < 12; ++word) {
      for (unsigned letters = 3 + random() % 8; letters > 0; --letters) {
        text += static_cast<char>('a' + random() % 26);
      }
      text += word == 11 ? '\n' : ' ';
    }
  }
  for (const char* name : {"long.x", "long.y"}) write_text(folder_ / name, text);
  const std::string more =
      "--threads 1 --set data.train.source=long.x --set data.train.target=long.y "
      "--set tokenizer.kind=unigram --set tokenizer.vocabulary=8000";
  for (const int signal : {SIGINT, SIGTERM}) {
    Conversation program(words_of(arguments("run", more)));
    std::this_thread::sleep_for(std::chrono::seconds(4));
    const auto start = std::chrono::steady_clock::now();
    program.send(signal);
    const Conversation::End end = program.end();
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
    EXPECT_EQ(end.code, 1);
    EXPECT_EQ(end.error.substr(0, end.error.find('\n')),
              "learning a tokenizer of 8,000 tokens from both sides of the training data");
    EXPECT_TRUE(says(end.error, "\nnunchi: stopped before training began")) << end.error;
    EXPECT_FALSE(fs::exists(folder_ / "run"));
  }
}

TEST_F(TrainProgram, ErrorsNameTheAssignmentThatCausesThem) {
  for (const auto& [assignment, why] :
       {std::pair{"checkpoints.keep_best=1", "'checkpoints.average' is larger than"},
        {"model.heads=5", "'model.heads' is 5, but a width of 48"},
        {"model.width=49", "'model.heads' is 2, but a width of 49"},
        {"tokenizer.shared=false", "'model.tied_embeddings' is 'all'"},
        {"training.schedule.final=1", "'training.schedule.final' is above"},
        {"training.max_steps=0", "'training' never ends"},
        {"data.max_ratio=0.5", "'data.max_ratio' must be 1 or more"},
        {"generation.max_length=1048577", "from 1 to 1048576"}}) {
    const ProgramResult result = run(arguments("run", std::string("--set ") + assignment));
    EXPECT_EQ(result.code, 2) << result.error;
    EXPECT_EQ(result.error.rfind(std::string("nunchi: --set ") + assignment + ": ", 0), 0u)
        << result.error;
    EXPECT_TRUE(says(result.error, why)) << result.error;
  }
}

TEST_F(TrainProgram, TheLargestGenerationLengthIsAccepted) {
  const ProgramResult largest =
      run(arguments("run",
                    "--set training.max_steps=1 --set validation.metric=loss "
                    "--set generation.max_length=1048576"));
  ASSERT_EQ(largest.code, 0) << largest.error;
  EXPECT_EQ(run("translate " + path("run")).code, 0);
}

// A limit on file sizes simulates a full disk.
TEST_F(TrainProgram, AFullDiskIsReportedWithTheFileAndARemedy) {
  ASSERT_EQ(run(arguments("run", "--set training.max_steps=5")).code, 0);
  const std::string limited = "ulimit -f 40; trap '' XFSZ;";
  const ProgramResult full = run(arguments("run", "--resume --set training.max_steps=9"), limited);
  EXPECT_EQ(full.code, 1) << full.error;
  EXPECT_TRUE(says(full.error,
                   "run/checkpoints/step-9/model.safetensors: File too large. Free "
                   "disk space and --resume from step 5."))
      << full.error;
  const ProgramResult averaged =
      run("average " + path("mean") + " " + path("run/checkpoints/step-5"), limited);
  EXPECT_EQ(averaged.code, 1) << averaged.error;
  EXPECT_TRUE(says(averaged.error, "mean/model.safetensors: File too large")) << averaged.error;
  EXPECT_FALSE(fs::exists(folder_ / "mean"));
  EXPECT_EQ(run(arguments("run", "--resume --set training.max_steps=9")).code, 0);
}

TEST_F(TrainProgram, TheProgressLineFitsTheTerminal) {
  int master = -1;
  const winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  const std::string command =
      std::string(NUNCHI_PROGRAM " ") +
      arguments("run",
                "--set training.max_steps=4000 --set training.max_minutes=0.05 "
                "--set validation.every=0 --set validation.metric=loss");
  const pid_t child = ::forkpty(&master, nullptr, nullptr, &size);
  if (child == 0) {
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  std::string printed;
  char bytes[4096];
  for (ssize_t count = 0; (count = ::read(master, bytes, sizeof bytes)) > 0;) {
    printed.append(bytes, static_cast<std::size_t>(count));
  }
  ::close(master);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << printed;
  int lines = 0;
  for (std::size_t begin = 0; (begin = printed.find("\r\033[K", begin)) != printed.npos;) {
    begin += 4;
    const std::string line = printed.substr(begin, printed.find('\r', begin) - begin);
    if (!says(line, "target tokens/s")) continue;
    ++lines;
    EXPECT_LT(line.size(), 80u) << line;
    EXPECT_TRUE(line.ends_with(" left")) << line;
  }
  EXPECT_GT(lines, 3) << printed;
}

TEST_F(TrainProgram, ADryRunDoesNotCreateTheOutputFolder) {
  const ProgramResult dry = run(arguments("run", "--dry-run"));
  ASSERT_EQ(dry.code, 0) << dry.error;
  for (const char* word : {"parameters", "weights and moments", "peak memory", " threads, ",
                           "largest micro-batch  ", " tokens of source and target\n",
                           "steps per epoch", "target tokens/s", "total steps          60"}) {
    EXPECT_TRUE(says(dry.out, word)) << dry.out;
  }
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

// The limit on the address space leaves 512 MiB for tensors. The feed-forward layers need about 64
// KiB for each of 12,000 tokens.
TEST_F(TrainProgram, MicroBatchesThatDoNotFitAreComputedInParts) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer reserves terabytes of address space";
#endif
  std::string lines;
  for (int i = 0; i < 200; ++i) {
    for (int word = 0; word < 60; ++word) lines += word % 2 == 0 ? "eins " : "zwei ";
    lines += "\n";
  }
  write_text(folder_ / "long", lines);
  const std::string more =
      "--threads 1 --set data.train.source=long --set data.train.target=long "
      "--set tokenizer.vocabulary=24 --set model.feed_forward=8192 --set validation.metric=loss "
      "--set training.accumulate=1 --set training.max_steps=2 ";
  const std::string limit = "ulimit -v 1100000;";
  const ProgramResult parts =
      run(arguments("run", more + "--set training.batch_tokens=6000"), limit);
  ASSERT_EQ(parts.code, 0) << parts.error;
  EXPECT_TRUE(says(parts.error, ": a micro-batch of ")) << parts.error;
  EXPECT_TRUE(says(parts.error, "tokens are computed in parts")) << parts.error;

  const ProgramResult found =
      run(arguments("auto", more + "--set training.batch_tokens=auto"), limit);
  ASSERT_EQ(found.code, 0) << found.error;
  EXPECT_TRUE(says(found.error, "training.batch_tokens: auto is ")) << found.error;
  EXPECT_FALSE(says(found.error, "computed in parts")) << found.error;
  const std::string saved = content(folder_ / "auto/checkpoints/step-2/config.yaml");
  EXPECT_FALSE(says(saved, "batch_tokens: auto")) << saved;
  // A resumed run keeps the number, also with more memory.
  const ProgramResult resumed = run(arguments(
      "auto", more + "--set training.batch_tokens=auto --resume --set training.max_steps=3"));
  ASSERT_EQ(resumed.code, 0) << resumed.error;
  EXPECT_FALSE(says(resumed.error, "auto is ")) << resumed.error;
  EXPECT_FALSE(says(resumed.error, "starts again")) << resumed.error;
  const auto line_of = [](const std::string& text) {
    const std::size_t begin = text.find("batch_tokens:");
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(line_of(content(folder_ / "auto/checkpoints/step-3/config.yaml")), line_of(saved));
}

TEST_F(TrainProgram, TheDumpedConfigGivesTheSameConfig) {
  const ProgramResult first = run(arguments("run", "--dump-config --set seed=9"));
  ASSERT_EQ(first.code, 0) << first.error;
  EXPECT_TRUE(says(first.out, "seed: 9")) << first.out;
  write_text(folder_ / "dumped.yaml", first.out);
  EXPECT_EQ(run("train " + path("dumped.yaml") + " --dump-config").out, first.out);
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(TrainProgram, BadConfigsAndDataAreErrors) {
  const ProgramResult unknown = run(arguments("run", "--set training.max_step=3"));
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(says(unknown.error, "training.max_steps")) << unknown.error;
  EXPECT_EQ(run("train " + path("nothing.yaml")).code, 1);
  for (const std::string more : {"", "--dry-run"}) {
    const ProgramResult missing =
        run(arguments("run", "--set data.validation.target=no.y " + more));
    EXPECT_EQ(missing.code, 1);
    EXPECT_TRUE(says(missing.error,
                     "no.y: No such file or directory. Relative paths start at "
                     "data.root, which is '" +
                         folder_.path().string() + "'."))
        << missing.error;
  }
  const ProgramResult relative =
      run("train " + path("config.yaml") + " --set output=" + path("run"));
  EXPECT_TRUE(says(relative.error, "Relative paths start at data.root, which is '.', in /"))
      << relative.error;
  write_text(folder_ / "val.y", "one line\n");
  const ProgramResult unequal = run(arguments("run"));
  EXPECT_EQ(unequal.code, 1);
  EXPECT_TRUE(says(unequal.error, "val.")) << unequal.error;
}

}  // namespace
}  // namespace nunchi::testing
