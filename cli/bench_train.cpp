#include <fmt/format.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>

#include "cli/bench.h"
#include "cli/progress_line.h"
#include "cli/scratch_folder.h"
#include "cli/set_option.h"
#include "nunchi/base/error.h"
#include "nunchi/benchmark/train.h"
#include "nunchi/training/training_run.h"

namespace nunchi::cli {
namespace {

struct Arguments {
  std::string config;
  std::vector<std::string> assignments;
  std::string preset = "base";
  std::int64_t vocabulary = 32000;
  std::optional<double> dropout;  // nullopt: the preset's rate
  benchmark::TrainBenchOptions options;
};

// Prints one line per step on stderr; in a terminal each line replaces the previous one.
class Progress {
 public:
  Progress(const benchmark::TrainBenchOptions& options, bool enabled)
      : enabled_(enabled),
        seconds_(options.seconds),
        tokens_(static_cast<double>(options.sentences * options.length)) {}

  void operator()(const benchmark::TrainBenchStep& step) {
    if (!enabled_) return;
    const std::string name = step.step < 1 ? "warm-up" : fmt::format("step {}", step.step);
    last_ = fmt::format("{:<10} {}loss {:.4f}  {:.0f} target tokens/s", name,
                        is_terminal_ ? time_spent(step.timed_seconds) : "", step.loss,
                        tokens_ / step.seconds);
    is_terminal_ ? line_.update(last_) : line_.print(last_);
  }
  // Leaves the last line in the terminal.
  void finish() {
    if (enabled_ && is_terminal_) line_.print(last_);
  }

 private:
  std::string time_spent(double spent) const {
    if (seconds_ <= 0) return {};
    return fmt::format("{} {:.0f}s of {:.0f}s  ", bar(spent / seconds_), spent, seconds_);
  }

  ProgressLine line_;
  bool enabled_;
  bool is_terminal_ = ::isatty(STDERR_FILENO) != 0;
  double seconds_;
  double tokens_;
  std::string last_;
};

struct Figures {
  std::string name, shape;
  std::int64_t parameters = 0;
  int steps = 0;
  // The median step with a preset; the mean over all steps with CONFIG, whose batches differ.
  double tokens_per_second = 0, seconds_per_step = 0;
  double flops_per_step = 0;
  double first_loss = 0, last_loss = 0;
};

void print(const Figures& f, const benchmark::Limits& limits) {
  const double gflops = f.flops_per_step / f.seconds_per_step / 1e9;
  fmt::print("{}: {} parameters, {}\n", f.name, f.parameters, f.shape);
  fmt::print("{:.1f} target tokens/s, {:.1f} ms a step ({} steps), loss {:.3f} -> {:.3f}\n",
             f.tokens_per_second, f.seconds_per_step * 1e3, f.steps, f.first_loss, f.last_loss);
  fmt::print("{:.1f} GFLOP/s of {:.1f}: {:.0f}% of this machine's peak in matrix products\n",
             gflops, limits.product_gflops, 100 * gflops / limits.product_gflops);
}

void add_figures(Json& json, const Figures& f, const benchmark::Limits& limits) {
  const double gflops = f.flops_per_step / f.seconds_per_step / 1e9;
  json["parameters"] = f.parameters;
  json["steps"] = f.steps;
  json["target_tokens_per_s"] = f.tokens_per_second;
  json["ms_per_step"] = f.seconds_per_step * 1e3;
  json["gflops"] = gflops;
  json["peak_fraction"] = gflops / limits.product_gflops;
  json["first_loss"] = f.first_loss;
  json["last_loss"] = f.last_loss;
}

// Trains on the data of a config, in a folder that is removed afterwards.
void run_config(const BenchOptions& common, const Arguments& arguments) {
  const TrainConfig config = read_train_config(arguments.config, arguments.assignments);
  const benchmark::TrainBenchOptions& options = arguments.options;
  const benchmark::Limits limits = benchmark::measure_limits(common.device);
  const std::unique_ptr<ContextBase> context = make_context(common.device);
  if (!common.json) print_machine(*context, limits);
  const ScratchFolder scratch;
  TrainingRun run(*context, config,
                  {.cache = config.data.cache.empty() ? scratch.path() : config.data.cache});
  Profile profile(options.profile ? Profile::Kind::times : Profile::Kind::work);
  const StepTimes times = run.measure(
      {.warmup = options.warmup, .steps = options.steps, .learning_rate = 1e-4}, &profile);
  double flops = 0;
  for (const auto& [name, entry] : profile.entries()) flops += entry.work.flops;
  const Figures figures{
      .name = arguments.config,
      .shape = fmt::format("real text, {} target tokens a batch", config.training.batch_tokens),
      .parameters = run.model().parameters().count(),
      .steps = options.steps,
      .tokens_per_second = times.target_tokens_per_second,
      .seconds_per_step = times.seconds_per_step,
      .flops_per_step = flops / options.steps,
      .first_loss = times.first_loss,
      .last_loss = times.last_loss};
  if (!common.json) {
    print(figures, limits);
    fmt::print("peak memory {:.0f} MiB\n", context->peak_memory_mib());
    if (options.profile) {
      print_profile(profile, limits, {options.steps, times.seconds_per_step, "step"});
    }
    return;
  }
  Json json = {{"config", arguments.config}, {"batch_tokens", config.training.batch_tokens}};
  add_figures(json, figures, limits);
  add_machine(json, *context, limits);
  fmt::print("{}\n", json.dump());
}

void run(const BenchOptions& common, Arguments arguments) {
  if (!arguments.config.empty()) return run_config(common, arguments);
  benchmark::TrainBenchOptions& options = arguments.options;
  options.model = model_preset(arguments.preset);
  if (arguments.dropout) options.model = options.model->with_dropout(*arguments.dropout);
  const std::vector<FamilyConfig::DropoutOption> dropouts = options.model->dropouts();
  std::string dropout_text;
  for (const auto& [name, rate] : dropouts) dropout_text += fmt::format(", {} {}", name, rate);
  options.vocabulary = arguments.vocabulary;
  if (options.seconds > 0) options.steps = 1 << 30;
  const benchmark::Limits limits = benchmark::measure_limits(common.device);
  const std::unique_ptr<ContextBase> context = make_context(common.device);
  if (!common.json) print_machine(*context, limits);
  Progress progress(options, !common.json);
  const benchmark::TrainBenchResult r =
      benchmark::measure_training(*context, options, std::ref(progress));
  progress.finish();
  const Figures figures{
      .name = options.model->family() + " " + arguments.preset,
      .shape = fmt::format("{} sentences of {} tokens, vocabulary {}{}", options.sentences,
                           options.length, arguments.vocabulary, dropout_text),
      .parameters = r.parameters,
      .steps = r.steps,
      .tokens_per_second = static_cast<double>(r.target_tokens) / r.median_seconds_per_step,
      .seconds_per_step = r.median_seconds_per_step,
      .flops_per_step = r.flops_per_step,
      .first_loss = r.first_loss,
      .last_loss = r.last_loss};
  if (!common.json) {
    print(figures, limits);
    fmt::print("peak memory {:.0f} MiB\n", context->peak_memory_mib());
    if (options.profile)
      print_profile(r.profile, limits, {r.steps, r.mean_seconds_per_step, "step"});
    return;
  }
  Json json = {{"preset", arguments.preset},
               {"sentences", options.sentences},
               {"length", options.length},
               {"vocab", arguments.vocabulary}};
  for (const auto& [name, rate] : dropouts) json[name] = rate;
  add_figures(json, figures, limits);
  add_machine(json, *context, limits);
  fmt::print("{}\n", json.dump());
}

}  // namespace

void add_bench_train(CLI::App& bench, Job& job) {
  CLI::App* train = add_command(bench, "train",
                                "Time whole training steps\n\nWith a preset, sentences are "
                                "random and of equal length; with CONFIG, they come from "
                                "the config's data.")
                        ->group(kBenchmarks);
  auto common = std::make_shared<BenchOptions>();
  auto arguments = std::make_shared<Arguments>();
  benchmark::TrainBenchOptions& options = arguments->options;
  OptionGroup(*train, kArguments)
      .add("CONFIG", arguments->config, text("CONFIG", "a YAML file"),
           "Training config; see configs/");
  OptionGroup with_config(*train, "With CONFIG");
  add_set_option(with_config, arguments->assignments);
  OptionGroup sizes(*train, "Without CONFIG");
  constexpr std::int64_t kMaxCount = 1 << 20;
  sizes.add("--preset", arguments->preset, text("NAME", "tiny, base, big, gpt2, bert-base, …"),
            "Shape of the model");
  sizes.add("--sentences", options.sentences, whole_number(1, kMaxCount), "Sentences per batch");
  sizes.add("--length", options.length, whole_number(1, kMaxCount), "Tokens per sentence");
  sizes.add("--vocab", arguments->vocabulary, whole_number(5, kMaxCount), "Size of the vocabulary");
  sizes
      .add("--dropout", arguments->dropout, number_below(0, 1),
           "Use this rate for every dropout of the model")
      ->default_str("the preset's");
  sizes.add("--seconds", options.seconds, number(0, 86400), "Run for this long instead of --steps")
      ->default_str("");
  OptionGroup measurement(*train, kMeasurement);
  measurement.add("--steps", options.steps, whole_number(1, kMaxCount), "Timed steps");
  measurement.add("--warmup", options.warmup, whole_number(1, kMaxCount),
                  "Steps before the timed ones");
  measurement.flag("--profile", options.profile, "Print the time of each kernel");
  common->add_to(*train);
  add_examples(*train,
               {"nunchi bench train --preset base --sentences 128 --length 32",
                "nunchi bench train configs/multi30k-tiny.yaml --set data.root=DATA --json"});
  train->callback([=, &job] {
    for (const char* name :
         {"--preset", "--sentences", "--length", "--vocab", "--seconds", "--dropout"}) {
      if (arguments->config.empty() || train->count(name) == 0) continue;
      throw UsageError(
          fmt::format("{} has no effect with CONFIG; use --set to change the config.", name));
    }
    if (arguments->config.empty() && !arguments->assignments.empty()) {
      throw UsageError("--set changes a CONFIG, but none is given.");
    }
    job = [=] { run(*common, *arguments); };
  });
}

}  // namespace nunchi::cli
