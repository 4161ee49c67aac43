// The text that --help prints: usage, arguments and options by group, examples. At most 80 columns.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace nunchi::cli {

// A command's description is a summary in its first line, which lists of commands show, and
// paragraphs after it.
class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

}  // namespace nunchi::cli
