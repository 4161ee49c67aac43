// What the benchmarks of the program share.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/device_options.h"
#include "nunchi/benchmark/limits.h"

namespace nunchi::cli {

using Json = nlohmann::ordered_json;

// What every benchmark can be told.
struct BenchOptions {
  ContextOptions device;
  bool json = false;

  void add_to(CLI::App& command);
};

// The machine and its limits, for people (on stderr) and for programs.
void print_machine(const ContextBase& context, const benchmark::Limits& limits);
void add_machine(Json& json, const ContextBase& context, const benchmark::Limits& limits);

// What a profile is the sum of.
struct Profiled {
  int rounds = 1;      // that many steps or rounds
  double seconds = 0;  // each
  const char* name = "step";
};
// Kernel by kernel: time per round, the floor that its work sets, and the ratio.
void print_profile(const Profile& profile, const benchmark::Limits& limits,
                   const Profiled& profiled);

void add_bench_gemm(CLI::App& bench);
void add_bench_attention(CLI::App& bench);
void add_bench_train(CLI::App& bench);
void add_bench_translate(CLI::App& bench);

}  // namespace nunchi::cli
