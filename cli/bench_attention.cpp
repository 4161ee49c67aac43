#include <fmt/format.h>

#include <memory>

#include "cli/bench.h"
#include "nunchi/benchmark/attention.h"

namespace nunchi::cli {
namespace {

void run(const BenchOptions& common, const benchmark::AttentionBenchOptions& options) {
  const benchmark::Limits limits = benchmark::measure_limits(common.device);
  const std::unique_ptr<ContextBase> context = make_context(common.device);
  const benchmark::AttentionBenchResult r = benchmark::measure_attention(*context, options);
  if (!common.json) {
    print_machine(*context, limits);
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
               {"arena_mib", r.arena_mib}};
  add_machine(json, *context, limits);
  fmt::print("{}\n", json.dump());
}

}  // namespace

void add_bench_attention(CLI::App& bench) {
  CLI::App* attention = bench.add_subcommand("attention", "Attention over one long sequence");
  auto common = std::make_shared<BenchOptions>();
  auto options = std::make_shared<benchmark::AttentionBenchOptions>();
  common->add_to(*attention);
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
  attention->callback([=] { run(*common, *options); });
}

}  // namespace nunchi::cli
