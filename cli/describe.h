// What the program's own descriptions say about a command or an option. The help, the man page and
// the shell completion are made from these.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

namespace nunchi::cli {

// The subcommands of the program or of a command, in the order of the help.
std::vector<CLI::App*> commands_of(CLI::App& app);
// Options and arguments that the help shows.
std::vector<CLI::Option*> options_of(CLI::App& app);

// The first line of the description; the paragraphs after it.
std::string summary_of(const CLI::App& app);
std::vector<std::string> paragraphs_of(const CLI::App& app);
// "nunchi translate [OPTIONS] MODEL"; `name` is the command with the program's name.
std::string usage_of(const CLI::App& app, const std::string& name);

bool takes_value(const CLI::Option& option);
bool value_is_optional(const CLI::Option& option);
bool is_repeatable(const CLI::Option& option);
std::string placeholder_of(const CLI::Option& option);  // "N"

// "-i" and "--input"; an argument may have none.
std::vector<std::string> flags_of(const CLI::Option& option);
// The same after the argument's name, if the option is also an argument: "MODEL", "-m", "--model".
std::vector<std::string> names_of(const CLI::Option& option);

struct Description {
  std::string sentence;
  std::string values;  // "[a whole number from 1 to 4096; default: 4]"; empty for a flag
};
Description description_of(const CLI::Option& option);

// How a shell completes the value: ValueKind::completion.
std::string completion_of(CLI::Option& option);

// The groups of the items, in the order in which they were added.
template <class Items>
std::vector<std::string> groups_of(const Items& items) {
  std::vector<std::string> groups;
  for (const auto* item : items) {
    const std::string group = item->get_group();
    if (!group.empty() && std::ranges::find(groups, group) == groups.end()) {
      groups.push_back(group);
    }
  }
  return groups;
}

// The groups of a command's options; the general ones, --help and --version, are the last.
std::vector<std::string> option_groups_of(const CLI::App& app);

}  // namespace nunchi::cli
