#include "cli/bench.h"

#include <fmt/format.h>

#include "cli/commands.h"
#include "nunchi/base/process.h"
#include "nunchi/kernels/product.h"

namespace nunchi::cli {

void BenchOptions::add_to(CLI::App& command) {
  command.add_option("--threads", threads, "Threads to use; 0: all cores")
      ->check(CLI::Range(0, 1024));
  command.add_option("--device", device, "cpu")->check(CLI::IsMember({"cpu"}));
  command.add_option("--precision", precision, "f32")->check(CLI::IsMember({"f32"}));
  command.add_flag("--json", json, "One JSON object on stdout");
}

void print_machine(const CpuContext& context, const benchmark::Limits& limits) {
  fmt::print(stderr, "{}, {} threads, {} kernels, products by {}\n", processor_name(),
             context.threads(), name_of(context.isa()), kernels::product_library());
  fmt::print(stderr,
             "this machine's own limit: {:.0f} GFLOP/s in f32 products, {:.0f} GB/s of memory\n",
             limits.product_gflops, limits.memory_gbps);
}

void add_machine(Json& json, const CpuContext& context, const benchmark::Limits& limits) {
  json["machine"] = processor_name();
  json["threads"] = context.threads();
  json["isa"] = name_of(context.isa());
  json["products"] = kernels::product_library();
  json["peak_gflops"] = limits.product_gflops;
}

void add_bench(CLI::App& program) {
  CLI::App* bench =
      program.add_subcommand("bench", "Measure speed and memory beside the machine's own limit");
  bench->require_subcommand(1);
  add_bench_gemm(*bench);
  add_bench_attention(*bench);
  add_bench_train(*bench);
}

}  // namespace nunchi::cli
