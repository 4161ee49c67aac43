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

void add_bench_attention(CLI::App& bench, Job& job) {
  CLI::App* attention =
      add_command(bench, "attention", "Time attention over one long sequence")->group(kBenchmarks);
  auto common = std::make_shared<BenchOptions>();
  auto options = std::make_shared<benchmark::AttentionBenchOptions>();
  OptionGroup sizes(*attention, "Sizes");
  sizes.add("--length", options->length, whole_number(1, 1 << 22),
            "Length of the sequence in tokens");
  sizes.add("--heads", options->heads, whole_number(1, 512), "Attention heads");
  sizes.add("--width", options->width, whole_number(1, 4096), "Width of each head");
  sizes.flag("--causal", options->causal,
             "Let each token attend only to itself and earlier tokens");
  OptionGroup(*attention, kMeasurement)
      .add("--repeats", options->repeats, whole_number(1, 1000), "Timed runs");
  common->add_to(*attention);
  add_examples(*attention, {"nunchi bench attention --length 16384 --heads 8 --width 64 --json"});
  attention->callback([=, &job] { job = [=] { run(*common, *options); }; });
}

}  // namespace nunchi::cli
