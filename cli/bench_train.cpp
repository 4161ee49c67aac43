#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "cli/bench.h"
#include "nunchi/base/error.h"
#include "nunchi/base/process.h"
#include "nunchi/benchmark/train.h"

namespace nunchi::cli {
namespace {

struct Arguments {
  std::string preset = "base";
  std::int64_t vocabulary = 32000;
  benchmark::TrainBenchOptions options;
};

// A line per step on stderr: one that moves in a terminal, one below the other elsewhere.
class Progress {
 public:
  Progress(const benchmark::TrainBenchOptions& options, bool shown)
      : shown_(shown),
        seconds_(options.seconds),
        tokens_(static_cast<double>(options.sentences * options.length)) {}

  void operator()(const benchmark::TrainBenchStep& step) const {
    if (!shown_) return;
    const std::string name = step.step < 1 ? "warm-up" : fmt::format("step {}", step.step);
    fmt::print(stderr, "{}{:<10} {}loss {:.4f}  {:.0f} target tokens/s{}",
               terminal_ ? "\r\033[K" : "", name, bar(step.spent), step.loss,
               tokens_ / step.seconds, terminal_ ? "" : "\n");
    std::fflush(stderr);
  }
  void finish() const {
    if (shown_ && terminal_) fmt::print(stderr, "\n");
  }

 private:
  std::string bar(double spent) const {
    if (seconds_ <= 0 || !terminal_) return {};
    constexpr std::size_t kWidth = 20;
    const auto filled = static_cast<std::size_t>(kWidth * std::min(1.0, spent / seconds_));
    return fmt::format("[{}{}] {:.0f}s of {:.0f}s  ", std::string(filled, '#'),
                       std::string(kWidth - filled, '.'), spent, seconds_);
  }

  bool shown_;
  bool terminal_ = ::isatty(STDERR_FILENO) != 0;
  double seconds_;
  double tokens_;
};

void run(const BenchOptions& common, Arguments arguments) {
  benchmark::TrainBenchOptions& options = arguments.options;
  if (arguments.preset == "gpt2") {
    throw UsageError("the preset gpt2 needs the family gpt, which this version does not have.");
  }
  options.model = TransformerConfig::preset(arguments.preset, arguments.vocabulary);
  if (options.seconds > 0) options.steps = 1 << 30;
  const benchmark::Limits limits = benchmark::measure_limits(common.threads);
  CpuContext context({.threads = common.threads});
  if (!common.json) print_machine(context, limits);
  const Progress progress(options, !common.json);
  const benchmark::TrainBenchResult r = benchmark::measure_training(context, options, progress);
  progress.finish();
  const double gflops = r.flops_per_step / r.seconds_per_step / 1e9;
  const double rate = static_cast<double>(r.target_tokens) / r.seconds_per_step;
  if (!common.json) {
    fmt::print("Transformer {}: {} parameters, {} sentences of {} tokens, vocabulary {}\n",
               arguments.preset, r.parameters, options.sentences, options.length,
               arguments.vocabulary);
    fmt::print("{:.1f} target tokens/s, {:.1f} ms a step ({} steps), loss {:.3f} -> {:.3f}\n", rate,
               r.seconds_per_step * 1e3, r.steps, r.first_loss, r.last_loss);
    fmt::print("{:.1f} GFLOP/s of {:.1f}: {:.0f}% of this machine's own product peak\n", gflops,
               limits.product_gflops, 100 * gflops / limits.product_gflops);
    fmt::print("peak memory {:.0f} MiB\n", peak_resident_mib());
    if (options.profile) print_profile(r.profile, limits, {r.steps, r.mean_seconds, "step"});
    return;
  }
  Json json = {{"preset", arguments.preset},
               {"device", common.device},
               {"precision", common.precision},
               {"sentences", options.sentences},
               {"length", options.length},
               {"vocab", arguments.vocabulary},
               {"parameters", r.parameters},
               {"steps", r.steps},
               {"target_tokens_per_s", rate},
               {"ms_per_step", r.seconds_per_step * 1e3},
               {"gflops", gflops},
               {"peak_fraction", gflops / limits.product_gflops},
               {"peak_mib", peak_resident_mib()},
               {"first_loss", r.first_loss},
               {"last_loss", r.last_loss}};
  add_machine(json, context, limits);
  fmt::print("{}\n", json.dump());
}

}  // namespace

void add_bench_train(CLI::App& bench) {
  CLI::App* train = bench.add_subcommand("train", "Whole training steps at fixed shapes");
  auto common = std::make_shared<BenchOptions>();
  auto arguments = std::make_shared<Arguments>();
  benchmark::TrainBenchOptions& options = arguments->options;
  common->add_to(*train);
  train->add_option("--preset", arguments->preset, "tiny, base or big")
      ->check(CLI::IsMember({"tiny", "base", "big", "gpt2"}))
      ->capture_default_str();
  const auto count = [&](const std::string& name, auto& field, const std::string& what, int low) {
    train->add_option(name, field, what)->check(CLI::Range(low, 1 << 20))->capture_default_str();
  };
  count("--sentences", options.sentences, "Sentences a batch", 1);
  count("--length", options.length, "Tokens a sentence", 1);
  count("--vocab", arguments->vocabulary, "Vocabulary", 5);
  count("--steps", options.steps, "Timed steps", 1);
  count("--warmup", options.warmup, "Steps before them", 1);
  train->add_option("--seconds", options.seconds, "Run for so long instead of --steps")
      ->check([](const std::string& text) {
        // CLI11's own range lets NaN through.
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        const bool fits = end != text.c_str() && *end == '\0' && value >= 0 && value <= 86400;
        return fits ? std::string() : "it is a number from 0 to 86400, not " + text;
      });
  train->add_flag("--profile", options.profile, "Show where the time goes");
  train->callback([=] { run(*common, *arguments); });
}

}  // namespace nunchi::cli
