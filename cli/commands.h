// The subcommands: each adds itself to the program and runs when it was called.
#pragma once

#include <CLI/CLI.hpp>

namespace nunchi::cli {

void add_average(CLI::App& program);
void add_bench(CLI::App& program);
void add_classify(CLI::App& program);
void add_demo(CLI::App& program);
void add_embed(CLI::App& program);
void add_evaluate(CLI::App& program);
void add_fill(CLI::App& program);
void add_generate(CLI::App& program);
void add_info(CLI::App& program);
void add_score(CLI::App& program);
void add_train(CLI::App& program);
void add_translate(CLI::App& program);
void add_tokenizer(CLI::App& program);

}  // namespace nunchi::cli
