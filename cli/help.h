// The text that --help prints: usage, arguments and options by group, examples. At most 80 columns.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace nunchi::cli {

// The first line of a command's description is its summary, which the list of commands shows. The
// other lines are paragraphs.
class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

}  // namespace nunchi::cli
