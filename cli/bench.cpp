#include "cli/bench.h"

#include <fmt/format.h>

#include "nunchi/kernels/product.h"

namespace nunchi::cli {

void BenchOptions::add_to(CLI::App& command) {
  add_device_options(command, device);
  add_json(command, json, "Print one JSON object");
}

void print_machine(const ContextBase& context, const benchmark::Limits& limits) {
  fmt::print(stderr, "{}{}\n", context.description(),
             context.device() == Device::cpu
                 ? fmt::format(", products by {}", kernels::product_library())
                 : "");
  fmt::print(stderr,
             "machine limits: {:.0f} GFLOP/s in {} products, {:.0f} GB/s of memory bandwidth\n",
             limits.product_gflops, name_of(context.precision()), limits.memory_gbps);
}

void add_machine(Json& json, const ContextBase& context, const benchmark::Limits& limits) {
  json["device"] = name_of(context.device());
  json["precision"] = name_of(context.precision());
  json["machine"] = context.description();
  json["threads"] = context.threads();
  if (context.device() == Device::cpu) json["products"] = kernels::product_library();
  json["peak_gflops"] = limits.product_gflops;
  json["peak_mib"] = context.peak_memory_mib();
}

void print_profile(const Profile& profile, const benchmark::Limits& limits,
                   const ProfiledRounds& profiled) {
  fmt::print("{:<28}{:>7}{:>10}{:>9}{:>10}{:>9}\n", "kernel", "calls", "ms", "share", "floor ms",
             "of floor");
  std::vector<std::pair<std::string, ProfileEntry>> entries(profile.entries().begin(),
                                                            profile.entries().end());
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  const double rounds = profiled.rounds;
  double kernel_seconds = 0, floor_seconds = 0;
  const auto line = [&](const std::string& name, double calls, double seconds, double floor) {
    fmt::print("{:<28}{:>7.0f}{:>10.2f}{:>8.1f}%{:>10.2f}{:>8.2f}x\n", name, calls, seconds * 1e3,
               100 * seconds / profiled.seconds, floor * 1e3, floor > 0 ? seconds / floor : 0);
  };
  for (const auto& [name, entry] : entries) {
    const double floor = entry.work.flops / limits.product_gflops / 1e9 / rounds +
                         entry.work.bytes / limits.memory_gbps / 1e9 / rounds;
    line(name, static_cast<double>(entry.calls) / rounds, entry.seconds / rounds, floor);
    kernel_seconds += entry.seconds / rounds;
    floor_seconds += floor;
  }
  line("between kernels", 0, profiled.seconds - kernel_seconds, 0);
  line(profiled.name, 1, profiled.seconds, floor_seconds);
}

void add_bench(CLI::App& program, Job& job) {
  CLI::App* bench =
      add_command(program, "bench", "Measure speed and memory against the machine's limits")
          ->group(kMeasuring);
  bench->require_subcommand(1);
  add_bench_gemm(*bench, job);
  add_bench_attention(*bench, job);
  add_bench_train(*bench, job);
  add_bench_translate(*bench, job);
}

}  // namespace nunchi::cli
