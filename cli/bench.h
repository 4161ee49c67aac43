// Code that all benchmarks share: options, the machine's limits, profiles.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands.h"
#include "cli/device_options.h"
#include "nunchi/benchmark/limits.h"

namespace nunchi::cli {

using Json = nlohmann::ordered_json;

// Options of every benchmark.
struct BenchOptions {
  ContextOptions device;
  bool json = false;

  void add_to(CLI::App& command);
};

// The machine and its limits, as text on stderr and as JSON.
void print_machine(const ContextBase& context, const benchmark::Limits& limits);
void add_machine(Json& json, const ContextBase& context, const benchmark::Limits& limits);

// What a profile was measured over: `rounds` repetitions of the same work, such as training steps.
struct ProfiledRounds {
  int rounds = 1;
  double seconds = 0;         // time of one round
  const char* name = "step";  // what the output calls a round
};
// Prints for each kernel its time per round, the shortest time that the machine's limits allow for
// its work ("floor"), and their ratio.
void print_profile(const Profile& profile, const benchmark::Limits& limits,
                   const ProfiledRounds& profiled);

// Titles of groups in the benchmarks' help.
inline constexpr const char* kBenchmarks = "Benchmarks";
inline constexpr const char* kMeasurement = "Measurement";

void add_bench_gemm(CLI::App& bench, Job& job);
void add_bench_attention(CLI::App& bench, Job& job);
void add_bench_train(CLI::App& bench, Job& job);
void add_bench_translate(CLI::App& bench, Job& job);

}  // namespace nunchi::cli
