#include <fmt/format.h>

#include <array>
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
#include "nunchi/device/memory_size.h"
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
          .learning = [&](const LearnProgress& progress) { line.update(learning_line(progress)); },
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

// The end of a message about a file that cannot be opened: where relative paths start. Empty unless
// a file of the part, as the config has it, is a relative path that does not exist.
std::string root_hint(const CorpusPart& configured, const CorpusPart& resolved,
                      const fs::path& root) {
  const auto paths_of = [](const CorpusPart& part) {
    return std::array{part.source, part.features, part.target, part.tsv, part.text};
  };
  const auto names = paths_of(configured), files = paths_of(resolved);
  std::error_code ignored;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty() || names[i].is_absolute() || fs::exists(files[i], ignored)) continue;
    return fmt::format(" Relative paths start at data.root, which is '{}'{}.", root.string(),
                       root.is_absolute() ? "" : ", in " + fs::current_path(ignored).string());
  }
  return {};
}

// Throws Error if the data cannot be opened. Called before anything is created.
void check_data(const DataConfig& data) {
  std::vector<CorpusPart> configured = data.train, parts = data.train_parts();
  if (data.validation) {
    configured.push_back(*data.validation);
    parts.push_back(*data.validation_part());
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    try {
      PairReader{parts[i]};
    } catch (const Error& error) {
      const std::string hint = root_hint(configured[i], parts[i], data.root);
      if (hint.empty()) throw;
      throw Error(error.what() + hint);
    }
  }
}

void dry_run(const TrainConfig& config, const ContextOptions& device, RunFolder::StartMode mode) {
  constexpr int kSteps = 3;
  RunFolder::check(config.output, mode);
  check_data(config.data);
  const std::unique_ptr<ContextBase> context = make_context(device);
  const ScratchFolder scratch;
  ProgressLine line;
  TrainingRunOptions options = run_options(*context, line);
  options.cache = config.data.cache.empty() ? scratch.path() : config.data.cache;
  TrainingRun run(*context, config, options);
  print_data(run, line);
  check_stop(options.stop);
  const StepTimes times = run.measure({.steps = kSteps, .largest_batch = true});
  fmt::print("parameters           {}\n", grouped(run.model().parameters().count()));
  fmt::print("weights and moments  {:.1f} MiB, gradients included\n",
             training_state_mib(run.model(), *context, run.config().training));
  fmt::print("peak memory          {:.1f} MiB of {:.0f} MiB on {}\n", context->peak_memory_mib(),
             device_memory(*context).total_mib, context->description());
  fmt::print("largest micro-batch  {} sentences, {} tokens of source and target{}\n",
             grouped(times.largest.sentences), grouped(times.largest.rows),
             times.largest.fits ? "" : "; it does not fit and is computed in parts");
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
  CLI::App* train = add_command(program, "train",
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
