#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "nunchi/base/error.h"
#include "nunchi/base/process.h"
#include "nunchi/benchmark/attention.h"
#include "nunchi/benchmark/gemm.h"
#include "nunchi/benchmark/train.h"
#include "nunchi/kernels/product.h"

namespace nunchi::cli {
namespace {

using Json = nlohmann::ordered_json;
using benchmark::Limits;

// What every benchmark can be told.
struct Common {
  int threads = 0;
  std::string device = "cpu";
  std::string precision = "f32";
  bool json = false;

  void add_to(CLI::App& command) {
    command.add_option("--threads", threads, "Threads to use; 0: all cores")
        ->check(CLI::Range(0, 1024));
    command.add_option("--device", device, "cpu")->check(CLI::IsMember({"cpu"}));
    command.add_option("--precision", precision, "f32")->check(CLI::IsMember({"f32"}));
    command.add_flag("--json", json, "One JSON object on stdout");
  }
};

void print_machine(const CpuContext& context, const Limits& limits) {
  fmt::print(stderr, "{}, {} threads, {} kernels, products by {}\n", processor_name(),
             context.threads(), name_of(context.isa()), kernels::product_library());
  fmt::print(stderr,
             "this machine's own limit: {:.0f} GFLOP/s in f32 products, {:.0f} GB/s of memory\n",
             limits.product_gflops, limits.memory_gbps);
}

void add_machine(Json& json, const CpuContext& context, const Limits& limits) {
  json["machine"] = processor_name();
  json["threads"] = context.threads();
  json["isa"] = name_of(context.isa());
  json["products"] = kernels::product_library();
  json["peak_gflops"] = limits.product_gflops;
}

void run_gemm(const Common& common, std::int64_t tokens, std::int64_t vocabulary) {
  CpuContext context({.threads = common.threads});
  const Limits limits = benchmark::measure_limits(context);
  print_machine(context, limits);
  Json results = Json::array();
  constexpr const char* kRoles[] = {"y = x Wt", "dx = dy W", "dW = dyt x"};
  if (!common.json) {
    fmt::print("{:<12}{:<12}{:>7}{:>7}{:>7}{:>10}{:>9}{:>11}{:>9}\n", "layer", "product", "M", "N",
               "K", "GFLOP/s", "of peak", "product ms", "pack ms");
  }
  for (const benchmark::GemmShape& shape : benchmark::base_model_shapes(tokens, vocabulary)) {
    const benchmark::GemmResult r = benchmark::measure_gemm(context, shape);
    const char* role = kRoles[static_cast<std::size_t>(shape.role)];
    const double fraction = r.gflops / limits.product_gflops;
    if (!common.json) {
      fmt::print("{:<12}{:<12}{:>7}{:>7}{:>7}{:>10.1f}{:>8.0f}%{:>11.2f}{:>9.2f}\n", shape.name,
                 role, shape.m, shape.n, shape.k, r.gflops, 100 * fraction, r.product_ms,
                 r.pack_ms);
    }
    results.push_back({{"layer", shape.name},
                       {"product", role},
                       {"m", shape.m},
                       {"n", shape.n},
                       {"k", shape.k},
                       {"gflops", r.gflops},
                       {"peak_fraction", fraction},
                       {"product_ms", r.product_ms},
                       {"pack_ms", r.pack_ms}});
  }
  if (!common.json) return;
  Json json = {{"products_measured", results}};
  add_machine(json, context, limits);
  fmt::print("{}\n", json.dump());
}

void run_attention(const Common& common, const benchmark::AttentionBenchOptions& options) {
  CpuContext context({.threads = common.threads});
  Limits limits;
  benchmark::AttentionBenchResult r;
  {
    // The limit is measured in memory of its own, so that the peak below is attention's.
    CpuContext other({.threads = common.threads});
    limits = benchmark::measure_limits(other);
  }
  r = benchmark::measure_attention(context, options);
  if (!common.json) {
    print_machine(context, limits);
    fmt::print("attention over {} tokens, {} heads of {}{}\n", options.length, options.heads,
               options.width, options.causal ? ", causal" : "");
    fmt::print("forward   {:>9.1f} ms {:>8.1f} GFLOP/s {:>5.0f}% of the peak\n", r.forward_ms,
               r.forward_gflops, 100 * r.forward_gflops / limits.product_gflops);
    fmt::print("backward  {:>9.1f} ms {:>8.1f} GFLOP/s {:>5.0f}% of the peak\n", r.backward_ms,
               r.backward_gflops, 100 * r.backward_gflops / limits.product_gflops);
    fmt::print("memory    {:>9.1f} MiB for inputs, outputs, gradients and tiles\n", r.arena_mib);
    return;
  }
  Json json = {{"length", options.length},
               {"heads", options.heads},
               {"width", options.width},
               {"causal", options.causal},
               {"forward_ms", r.forward_ms},
               {"backward_ms", r.backward_ms},
               {"gflops", r.forward_gflops},
               {"backward_gflops", r.backward_gflops},
               {"peak_fraction", r.forward_gflops / limits.product_gflops},
               {"backward_peak_fraction", r.backward_gflops / limits.product_gflops},
               {"arena_mib", r.arena_mib},
               {"peak_mib", peak_resident_mib()}};
  add_machine(json, context, limits);
  fmt::print("{}\n", json.dump());
}

// Kernel by kernel: time per step, the floor that its work sets, and the ratio.
void print_profile(const benchmark::TrainBenchResult& r, const Limits& limits) {
  fmt::print("{:<28}{:>7}{:>10}{:>9}{:>10}{:>9}\n", "kernel", "calls", "ms", "share", "floor ms",
             "of floor");
  std::vector<std::pair<std::string, ProfileEntry>> entries(r.profile.entries().begin(),
                                                            r.profile.entries().end());
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  const double steps = r.steps;
  double kernels = 0, floors = 0;
  const auto line = [&](const std::string& name, double calls, double seconds, double floor) {
    fmt::print("{:<28}{:>7.0f}{:>10.2f}{:>8.1f}%{:>10.2f}{:>8.2f}x\n", name, calls, seconds * 1e3,
               100 * seconds / r.mean_seconds, floor * 1e3, floor > 0 ? seconds / floor : 0);
  };
  for (const auto& [name, entry] : entries) {
    const double floor = entry.work.flops / limits.product_gflops / 1e9 / steps +
                         entry.work.bytes / limits.memory_gbps / 1e9 / steps;
    line(name, static_cast<double>(entry.calls) / steps, entry.seconds / steps, floor);
    kernels += entry.seconds / steps;
    floors += floor;
  }
  line("between kernels", 0, r.mean_seconds - kernels, 0);
  line("step", 1, r.mean_seconds, floors);
}

struct TrainArguments {
  std::string preset = "base";
  std::int64_t vocabulary = 32000;
  benchmark::TrainBenchOptions options;
};

void run_train(const Common& common, TrainArguments arguments) {
  benchmark::TrainBenchOptions& options = arguments.options;
  if (arguments.preset == "gpt2")
    throw UsageError("the preset gpt2 needs the family gpt, which this version does not have.");
  const nn::NormPlacement placement = options.model.norm_placement;
  options.model = TransformerConfig::preset(arguments.preset, arguments.vocabulary);
  if (placement == nn::NormPlacement::pre) options.model.norm_placement = placement;
  if (options.seconds > 0) options.steps = 1 << 30;
  CpuContext context({.threads = common.threads});
  Limits limits;
  {
    CpuContext other({.threads = common.threads});
    limits = benchmark::measure_limits(other);
  }
  if (!common.json) print_machine(context, limits);
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  double spent = 0;
  const auto tokens = static_cast<double>(options.sentences * options.length);
  const benchmark::TrainBenchResult r =
      benchmark::measure_training(context, options, [&](const benchmark::TrainBenchStep& step) {
        if (common.json) return;
        if (step.step >= 1) spent += step.seconds;
        std::string done;
        if (options.seconds > 0) {
          const int filled = static_cast<int>(20 * std::min(1.0, spent / options.seconds));
          done = fmt::format(
              "[{}{}] {:.0f}s of {:.0f}s  ", std::string(static_cast<std::size_t>(filled), '#'),
              std::string(static_cast<std::size_t>(20 - filled), '.'), spent, options.seconds);
        }
        const std::string name = step.step < 1 ? "warm-up" : fmt::format("step {}", step.step);
        fmt::print(stderr, "{}{:<10} {}loss {:.4f}  {:.0f} target tokens/s{}",
                   terminal ? "\r\033[K" : "", name, done, step.loss, tokens / step.seconds,
                   terminal ? "" : "\n");
        std::fflush(stderr);
      });
  if (!common.json && terminal) fmt::print(stderr, "\n");
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
    if (options.profile) print_profile(r, limits);
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

void add_bench(CLI::App& program) {
  CLI::App* bench =
      program.add_subcommand("bench", "Measure speed and memory beside the machine's own limit");
  bench->require_subcommand(1);

  CLI::App* gemm = bench->add_subcommand("gemm", "f32 products at the base model's shapes");
  auto gemm_common = std::make_shared<Common>();
  auto tokens = std::make_shared<std::int64_t>(4096),
       vocabulary = std::make_shared<std::int64_t>(32000);
  gemm_common->add_to(*gemm);
  gemm->add_option("--tokens", *tokens, "Rows of a batch")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  gemm->add_option("--vocab", *vocabulary, "Vocabulary")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  gemm->callback([=] { run_gemm(*gemm_common, *tokens, *vocabulary); });

  CLI::App* attention = bench->add_subcommand("attention", "Attention over one long sequence");
  auto attention_common = std::make_shared<Common>();
  auto options = std::make_shared<benchmark::AttentionBenchOptions>();
  attention_common->add_to(*attention);
  attention->add_option("--length", options->length, "Tokens")
      ->check(CLI::Range(1, 1 << 22))
      ->capture_default_str();
  attention->add_option("--heads", options->heads, "Heads")
      ->check(CLI::Range(1, 512))
      ->capture_default_str();
  attention->add_option("--width", options->width, "Width of a head")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  attention->add_option("--repeats", options->repeats, "Timed runs")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  attention->add_flag("--causal", options->causal, "Each token sees only those before it");
  attention->callback([=] { run_attention(*attention_common, *options); });

  CLI::App* train = bench->add_subcommand("train", "Whole training steps at fixed shapes");
  auto train_common = std::make_shared<Common>();
  auto arguments = std::make_shared<TrainArguments>();
  train_common->add_to(*train);
  train->add_option("--preset", arguments->preset, "tiny, base or big")
      ->check(CLI::IsMember({"tiny", "base", "big", "gpt2"}))
      ->capture_default_str();
  train->add_option("--sentences", arguments->options.sentences, "Sentences a batch")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  train->add_option("--length", arguments->options.length, "Tokens a sentence")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  train->add_option("--vocab", arguments->vocabulary, "Vocabulary")
      ->check(CLI::Range(5, 1 << 20))
      ->capture_default_str();
  train->add_option("--steps", arguments->options.steps, "Timed steps")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  train->add_option("--warmup", arguments->options.warmup, "Steps before them")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  train->add_option("--seconds", arguments->options.seconds, "Run for so long instead of --steps")
      ->check(CLI::Range(0.0, 86400.0));
  train->add_flag("--profile", arguments->options.profile, "Show where the time goes");
  train->callback([=] { run_train(*train_common, *arguments); });
}

}  // namespace nunchi::cli
