// Options and arguments of a command, in the groups that its help shows.
//
//   OptionGroup search(command, "Search");
//   search.add("--beam-size", options.beam_size, whole_number(1, 4096), "Hypotheses to keep");
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/bind_option.h"
#include "cli/value_kind.h"

namespace nunchi::cli {

class OptionGroup {
 public:
  OptionGroup(CLI::App& command, std::string title) : command_(command), title_(std::move(title)) {}

  // Adds an option ("-i,--input"), an argument, whose name has no dashes ("SRC"), or an argument
  // that can also be given as an option ("-m,--model,MODEL"). The current value of the variable is
  // shown as the default; default_str() replaces it.
  template <class T>
  CLI::Option* add(const std::string& names, T& value, const ValueKind& kind,
                   const std::string& help) {
    return set_group_and_kind(bind_option(command_, names, value, help), kind);
  }
  CLI::Option* flag(const std::string& name, bool& value, const std::string& help);

 private:
  CLI::Option* set_group_and_kind(CLI::Option* option, const ValueKind& kind) const;

  CLI::App& command_;
  std::string title_;
};

// Adds a command to the program or to another command. The first line of the description is the
// summary, which the list of commands shows.
CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& description);

inline constexpr const char* kArguments = "Arguments";
inline constexpr const char* kInputAndOutput = "Input and output";
inline constexpr const char* kOutputFormat = "Output format";
inline constexpr const char* kBatches = "Batches";

// Adds examples at the end of the command's help; each can be typed as a command.
void add_examples(CLI::App& command, const std::vector<std::string>& lines);

// Options that several commands share.
CLI::Option* add_input(CLI::App& command, std::string& input, const std::string& help);
void add_output(CLI::App& command, std::string& output, const std::string& help);
CLI::Option* add_model(CLI::App& command, std::string& folder);
void add_models(CLI::App& command, std::vector<std::string>& folders);
void add_json(CLI::App& command, bool& json, const std::string& help);

}  // namespace nunchi::cli
