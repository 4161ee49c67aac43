#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/device_options.h"
#include "cli/progress_line.h"
#include "cli/scratch_folder.h"
#include "cli/set_option.h"
#include "cli/stop_signals.h"
#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"
#include "nunchi/base/interrupted.h"
#include "nunchi/training/training_run.h"

namespace nunchi::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string config;
  std::vector<std::string> assignments;
  bool resume = false, overwrite = false, dry_run = false, dump_config = false;
  ContextOptions device;
};

std::string line_of(const PrepareProgress& progress) {
  const bool reading = progress.stage == PrepareProgress::Stage::reading;
  return fmt::format("{} {} the data  {} lines", bar(progress.fraction),
                     reading ? "reading" : "tokenising", grouped(progress.lines));
}

TrainingRunOptions run_options(const ContextBase& context, ProgressLine& line) {
  return {.threads = context.threads(),
          .note = [&](const std::string& sentence) { line.print(sentence); },
          .progress = [&](const PrepareProgress& progress) { line.update(line_of(progress)); },
          .stop = &StopSignals::requested()};
}

void print_data(const TrainingRun& run, ProgressLine& line) {
  const std::vector<CorpusPart> parts = run.config().data.train_parts();
  const std::vector<PairReport> reports = run.reports();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    line.print(names_of(std::span(&parts[i], 1)) + ": " +
               to_text(reports[i], kind_of_line(parts[i])));
  }
  if (const auto report = run.validation_report()) {
    const CorpusPart part = *run.config().data.validation_part();
    line.print(names_of(std::span(&part, 1)) + ": " + to_text(*report, kind_of_line(part)));
  }
}

void dry_run(const TrainConfig& config, const ContextOptions& device, RunFolder::StartMode mode) {
  constexpr int kSteps = 3;
  RunFolder::check(config.output, mode);
  const std::unique_ptr<ContextBase> context = make_context(device);
  const ScratchFolder scratch;
  ProgressLine line;
  TrainingRunOptions options = run_options(*context, line);
  options.cache = config.data.cache.empty() ? scratch.path() : config.data.cache;
  TrainingRun run(*context, config, options);
  print_data(run, line);
  check_stop(options.stop);
  const StepTimes times = run.measure({.steps = kSteps});
  const std::int64_t parameters = run.model().parameters().count();
  fmt::print("parameters           {}\n", grouped(parameters));
  fmt::print("weights and moments  {:.1f} MiB, gradients included\n",
             static_cast<double>(parameters) * 4 * sizeof(float) / (1 << 20));
  fmt::print("peak memory          {:.1f} MiB after {} steps\n", context->peak_memory_mib(),
             kSteps + 1);
  fmt::print("steps per epoch      {}\n", grouped(times.steps_per_epoch));
  fmt::print("time per step        {:.3f} s, {} target tokens/s\n", times.seconds_per_step,
             grouped(static_cast<std::int64_t>(times.target_tokens_per_second)));
  if (times.total_steps > 0) {
    fmt::print("total steps          {}\n", grouped(times.total_steps));
    fmt::print("total time           {}, without validation\n",
               duration(static_cast<double>(times.total_steps) * times.seconds_per_step));
  }
  if (config.training.max_minutes > 0) {
    fmt::print("maximum time         {}\n", duration(60 * config.training.max_minutes));
  }
}

// Throws Error if the data cannot be opened. Called before anything is created.
void check_data(const DataConfig& data) {
  std::vector<CorpusPart> parts = data.train_parts();
  if (const auto validation = data.validation_part()) parts.push_back(*validation);
  for (const CorpusPart& part : parts) PairReader{part};
}

void train(const TrainConfig& config, const ContextOptions& device, RunFolder::StartMode mode) {
  check_data(config.data);
  RunFolder folder(config.output, mode);
  check_inputs_not_removed(config, folder);
  const std::unique_ptr<ContextBase> context = make_context(device);
  ProgressLine line;
  TrainingRunOptions options = run_options(*context, line);
  options.cache = config.cache();
  options.checkpoint = folder.last_checkpoint();
  TrainingRun run(*context, config, options);
  print_data(run, line);
  line.print(fmt::format("{} parameters on {}", grouped(run.model().parameters().count()),
                         context->description()));

  TrainerHooks hooks;
  hooks.progress = [&](const TrainingProgress& progress) {
    line.update(training_line(progress, line.columns()));
  };
  hooks.note = [&](const std::string& sentence) { line.print(sentence); };
  hooks.stop = &StopSignals::requested();
  switch (run.train(&folder, hooks)) {
    case TrainingEnd::interrupted:
      return line.print("stopped after writing a checkpoint; --resume continues");
    case TrainingEnd::stopped_early:
      line.print("stopping early: validation has stopped improving");
      break;
    case TrainingEnd::finished:
      break;
  }
  line.print("the model is in " + config.output.string());
}

void run(const Arguments& arguments) {
  const TrainConfig config = read_train_config(arguments.config, arguments.assignments);
  if (arguments.dump_config) {
    fmt::print("{}", to_yaml(config));
    return;
  }
  const RunFolder::StartMode mode = arguments.resume      ? RunFolder::StartMode::resume
                                    : arguments.overwrite ? RunFolder::StartMode::overwrite
                                                          : RunFolder::StartMode::fresh;
  const StopSignals signals;
  try {
    if (arguments.dry_run) return dry_run(config, arguments.device, mode);
    train(config, arguments.device, mode);
  } catch (const Interrupted&) {
    throw Error("stopped before training began; run the same command to start again.");
  }
}

}  // namespace

void add_train(CLI::App& program, Job& job) {
  CLI::App* train = program
                        .add_subcommand("train",
                                        "Train a model from a config file\n\n"
                                        "Ctrl-C stops the run after a checkpoint; --resume "
                                        "continues it.")
                        ->group(kTraining);
  auto arguments = std::make_shared<Arguments>();
  OptionGroup(*train, kArguments)
      .add("-c,--config,CONFIG", arguments->config, text("CONFIG", "a YAML file"),
           "Training config; see configs/")
      ->required();
  OptionGroup run_options(*train, "Run");
  add_set_option(run_options, arguments->assignments);
  CLI::Option* resume = run_options.flag("--resume", arguments->resume,
                                         "Continue the run in the config's output folder");
  run_options
      .flag("--overwrite", arguments->overwrite, "Remove an earlier run in the output folder")
      ->excludes(resume);
  run_options.flag("--dry-run", arguments->dry_run,
                   "Print sizes, memory, steps and time without training");
  run_options.flag("--dump-config", arguments->dump_config,
                   "Print the config with all defaults and stop");
  add_device_options(*train, arguments->device);
  add_examples(*train,
               {"nunchi train my.yaml --dry-run",
                "nunchi train configs/multi30k-tiny.yaml --set data.root=DATA --device cuda"});
  train->callback([=, &job] { job = [=] { run(*arguments); }; });
}

}  // namespace nunchi::cli
