// Commands and options, read from the program's help.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/program.h"

namespace nunchi::testing {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The lines below a title ("Device:") up to the next empty line.
inline std::vector<std::string> section(const std::string& help, const std::string& title) {
  const std::vector<std::string> lines = lines_of(help);
  const auto begin = std::ranges::find(lines, title + ":");
  if (begin == lines.end()) return {};
  return {begin + 1, std::find(begin, lines.end(), "")};
}

inline std::string help_of(const std::string& command) { return run(command + " --help").out; }

// The commands that a help text lists, without their subcommands.
inline std::vector<std::string> commands_in(const std::string& help) {
  std::vector<std::string> commands;
  bool in_options = false;
  for (const std::string& line : lines_of(help)) {
    if (line.ends_with(':')) in_options = line == "Options:";
    const bool is_command = line.starts_with("  ") && line.size() > 2 && line[2] != ' ';
    if (is_command && !in_options) commands.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return commands;
}

// All commands that can be run: "translate", "bench train".
inline const std::vector<std::string>& all_commands() {
  static const std::vector<std::string> commands = [] {
    std::vector<std::string> found;
    for (const std::string& name : commands_in(help_of(""))) {
      const std::string help = help_of(name);
      if (help.find("Usage: nunchi " + name + " COMMAND") == help.npos) {
        found.push_back(name);
        continue;
      }
      for (const std::string& subcommand : commands_in(help))
        found.push_back(name + " " + subcommand);
    }
    return found;
  }();
  return commands;
}

struct ShownOption {
  std::string name;  // "  -i, --input FILE"
  std::string text;
};

// The options and arguments in a help text, each with its whole description.
inline std::vector<ShownOption> options_in(const std::string& help) {
  constexpr std::size_t kTextColumn = 28;  // where the text of an option begins
  std::vector<ShownOption> options;
  bool in_examples = false;
  for (const std::string& line : lines_of(help)) {
    in_examples = in_examples || line == "Examples:";
    if (in_examples || !line.starts_with("  ")) continue;
    const bool continues = line.size() > kTextColumn && line.find_first_not_of(' ') == kTextColumn;
    if (continues) {
      options.back().text += (options.back().text.empty() ? "" : " ") + line.substr(kTextColumn);
      continue;
    }
    const std::size_t end = line.find("  ", line.find_first_not_of(' '));
    options.push_back(
        {line.substr(0, end), line.size() > kTextColumn ? line.substr(kTextColumn) : ""});
  }
  return options;
}

}  // namespace nunchi::testing
