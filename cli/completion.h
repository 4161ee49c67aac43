// Scripts with which a shell completes nunchi's commands, options and values.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace nunchi::cli {

std::string bash_completion(CLI::App& program);
std::string zsh_completion(CLI::App& program);
std::string fish_completion(CLI::App& program);

}  // namespace nunchi::cli
