// The manual page nunchi(1), in the format of man.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace nunchi::cli {

std::string man_page(CLI::App& program);

}  // namespace nunchi::cli
