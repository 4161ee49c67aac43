#include <fmt/format.h>

#include <memory>

#include "cli/bench.h"
#include "nunchi/benchmark/gemm.h"

namespace nunchi::cli {
namespace {

struct Arguments {
  std::int64_t tokens = 4096;
  std::int64_t vocabulary = 32000;
};

void run(const BenchOptions& common, const Arguments& arguments) {
  const std::unique_ptr<ContextBase> context = make_context(common.device);
  const benchmark::Limits limits = benchmark::measure_limits(common.device);
  print_machine(*context, limits);
  Json results = Json::array();
  constexpr const char* kRoles[] = {"y = x W^T", "dx = dy W", "dW = dy^T x"};
  if (!common.json) {
    fmt::print("{:<12}{:<12}{:>7}{:>7}{:>7}{:>10}{:>9}{:>11}{:>9}\n", "layer", "product", "M", "N",
               "K", "GFLOP/s", "of peak", "product ms", "pack ms");
  }
  for (const benchmark::GemmShape& shape :
       benchmark::base_model_shapes(arguments.tokens, arguments.vocabulary)) {
    const benchmark::GemmResult r = benchmark::measure_gemm(*context, shape);
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
  add_machine(json, *context, limits);
  fmt::print("{}\n", json.dump());
}

}  // namespace

void add_bench_gemm(CLI::App& bench, Job& job) {
  CLI::App* gemm =
      add_command(bench, "gemm", "Time matrix products in the shapes of the base model")
          ->group(kBenchmarks);
  auto common = std::make_shared<BenchOptions>();
  auto arguments = std::make_shared<Arguments>();
  OptionGroup sizes(*gemm, "Sizes");
  sizes.add("--tokens", arguments->tokens, whole_number(1, 1 << 20), "Tokens per batch");
  sizes.add("--vocab", arguments->vocabulary, whole_number(1, 1 << 20), "Size of the vocabulary");
  common->add_to(*gemm);
  add_examples(*gemm, {"nunchi bench gemm --tokens 4096 --vocab 32000"});
  gemm->callback([=, &job] { job = [=] { run(*common, *arguments); }; });
}

}  // namespace nunchi::cli
