// The subcommands. Each adds its options to the program; its callback checks the arguments and sets
// `job`, which the program runs once the whole command line has been parsed.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace nunchi::cli {

using Job = std::function<void()>;

void add_average(CLI::App& program, Job& job);
void add_bench(CLI::App& program, Job& job);
void add_classify(CLI::App& program, Job& job);
void add_completion(CLI::App& program, Job& job);
void add_demo(CLI::App& program, Job& job);
void add_embed(CLI::App& program, Job& job);
void add_evaluate(CLI::App& program, Job& job);
void add_fill(CLI::App& program, Job& job);
void add_generate(CLI::App& program, Job& job);
void add_info(CLI::App& program, Job& job);
void add_inspect(CLI::App& program, Job& job);
void add_lab(CLI::App& program, Job& job);
void add_quantize(CLI::App& program, Job& job);
void add_score(CLI::App& program, Job& job);
void add_tokenizer(CLI::App& program, Job& job);
void add_train(CLI::App& program, Job& job);
void add_translate(CLI::App& program, Job& job);

// Titles of the command groups in the program's help.
inline constexpr const char* kStart = "Start here";
inline constexpr const char* kTraining = "Train a model";
inline constexpr const char* kUsing = "Use a model";
inline constexpr const char* kMeasuring = "Measure";
inline constexpr const char* kShell = "Set up the shell";

}  // namespace nunchi::cli
