#include <fmt/format.h>

#include <sstream>
#include <string_view>

#include "cli/completion.h"
#include "cli/describe.h"
#include "cli/value_kind.h"

namespace nunchi::cli {
namespace {

// A command and its words without the program's name: "tokenizer train"; the program: "".
struct Command {
  std::string words;
  CLI::App* app;
};

void add_commands(CLI::App& app, const std::string& words, std::vector<Command>& commands) {
  commands.push_back({words, &app});
  for (CLI::App* command : commands_of(app)) {
    add_commands(*command, words + (words.empty() ? "" : " ") + command->get_name(), commands);
  }
}

// The program and all its commands.
std::vector<Command> all_commands(CLI::App& program) {
  std::vector<Command> commands;
  add_commands(program, "", commands);
  return commands;
}

// The words that can follow a command: its subcommands and, after the program, "help".
std::string subcommands_of(const Command& command) {
  std::string words;
  for (const CLI::App* subcommand : commands_of(*command.app))
    words += subcommand->get_name() + " ";
  return words + (command.words.empty() ? "help" : "");
}

// Patterns of `case` in bash and fish: "' demo'|' tokenizer'|'tokenizer train'".
std::string command_patterns(CLI::App& program, const char* separator) {
  std::string patterns;
  for (const Command& command : all_commands(program)) {
    if (command.words.empty()) continue;
    const bool nested = command.words.find(' ') != std::string::npos;
    patterns += fmt::format("{}'{}{}'", patterns.empty() ? "" : separator, nested ? "" : " ",
                            command.words);
  }
  return patterns;
}

std::string replaced(std::string_view text, std::string_view characters, auto&& replacement) {
  std::string result;
  for (const char c : text) {
    result += characters.find(c) == characters.npos ? std::string(1, c) : replacement(c);
  }
  return result;
}

// The text in single quotes, for bash and zsh.
std::string single_quoted(std::string_view text) {
  return "'" + replaced(text, "'", [](char) { return std::string("'\\''"); }) + "'";
}

}  // namespace

std::string bash_completion(CLI::App& program) {
  std::string values, options;
  for (const Command& command : all_commands(program)) {
    std::string names, argument;
    for (CLI::Option* option : options_of(*command.app)) {
      const std::string completion = completion_of(*option);
      if (option->get_positional() && argument.empty()) argument = completion;
      for (const std::string& name : flags_of(*option)) {
        names += name + " ";
        if (!takes_value(*option)) continue;
        values += fmt::format("    '{} {}') offer={} ;;\n", command.words, name,
                              single_quoted(completion));
      }
    }
    options += fmt::format("    '{}') options={} offer={} ;;\n", command.words,
                           single_quoted(names + subcommands_of(command)), single_quoted(argument));
  }
  return fmt::format(R"(# bash completion of nunchi. Written by: nunchi completion bash
_nunchi() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command= options= offer= i
  # Bash separates --option=value at the "=".
  if [[ $current == = ]]; then current=; elif [[ $previous == = ]]; then previous=${{COMP_WORDS[COMP_CWORD - 2]}}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command ${{COMP_WORDS[i]}}" in
    {commands}) command="${{command:+$command }}${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$command" in
{options}  esac
  case "$command $previous" in
{values}    *) [[ $current == -* || -z $offer ]] && offer=$options ;;
  esac
  COMPREPLY=()
  case "$offer" in
    {files}) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    {folders}) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$offer" -- "$current") ;;
  esac
}}
complete -F _nunchi nunchi
)",
                     fmt::arg("commands", command_patterns(program, "|")),
                     fmt::arg("options", options), fmt::arg("values", values),
                     fmt::arg("files", kCompleteFiles), fmt::arg("folders", kCompleteFolders));
}

namespace {

// What _arguments does for a value.
std::string zsh_action(const std::string& completion) {
  if (completion == kCompleteFiles) return "_files";
  if (completion == kCompleteFolders) return "_files -/";
  return completion.empty() ? " " : "(" + completion + ")";
}

// The text with a backslash before the characters that separate the parts of a specification.
std::string zsh_text(const std::string& text) {
  return replaced(text, "[]:\\", [](char c) { return std::string("\\") + c; });
}

std::string zsh_function_name(const Command& command) {
  return (command.words.empty() ? "_nunchi" : "_nunchi_") +
         replaced(command.words, " -", [](char) { return std::string("_"); });
}

// The specifications of a command's options and arguments for _arguments, one per line.
std::string zsh_specifications(const Command& command) {
  std::string lines;
  for (CLI::Option* option : options_of(*command.app)) {
    const std::string text = zsh_text(option->get_description());
    const std::string value = fmt::format(":{}:{}", zsh_text(placeholder_of(*option)),
                                          zsh_action(completion_of(*option)));
    const std::vector<std::string> names = flags_of(*option);
    if (option->get_positional()) {
      lines +=
          fmt::format(" \\\n    {}", single_quoted((is_repeatable(*option) ? "*" : "") + value));
    }
    const bool repeated = is_repeatable(*option);
    for (const std::string& name : names) {
      const std::string exclusion = repeated           ? "*"
                                    : names.size() > 1 ? fmt::format("({})", fmt::join(names, " "))
                                                       : "";
      const std::string colon = value_is_optional(*option) ? ":" : "";
      lines +=
          fmt::format(" \\\n    {}", single_quoted(exclusion + name + "[" + text + "]" +
                                                   (takes_value(*option) ? colon + value : "")));
    }
  }
  return lines;
}

// A command that has subcommands: offers them, then leaves the rest to the function of the one
// chosen.
std::string zsh_group(const Command& command) {
  std::string offers, calls;
  for (CLI::App* subcommand : commands_of(*command.app)) {
    const std::string name = subcommand->get_name();
    offers +=
        fmt::format("      {}\n", single_quoted(name + ":" + zsh_text(summary_of(*subcommand))));
    calls += fmt::format("        {}) {}_{} ;;\n", name, zsh_function_name(command),
                         replaced(name, "-", [](char) { return std::string("_"); }));
  }
  if (command.words.empty()) {
    offers += "      'help:Show the options of a command'\n";
    calls += "        help) _nunchi ;;\n";
  }
  return fmt::format(R"(  local -a commands
  local state line
  _arguments -C{} \
    '1: :->command' '*:: :->arguments'
  case $state in
    command)
      commands=(
{}      )
      _describe command commands ;;
    arguments)
      case $words[1] in
{}      esac ;;
  esac
)",
                     zsh_specifications(command), offers, calls);
}

}  // namespace

std::string zsh_completion(CLI::App& program) {
  std::string script =
      "#compdef nunchi\n# zsh completion of nunchi. Written by: nunchi completion zsh\n";
  for (const Command& command : all_commands(program)) {
    const bool is_group = !commands_of(*command.app).empty();
    script += fmt::format(
        "\n{}() {{\n{}}}\n", zsh_function_name(command),
        is_group ? zsh_group(command) : "  _arguments" + zsh_specifications(command) + "\n");
  }
  // As an autoloaded file the script is the function; read with `source`, it registers it.
  return script +
         "\nif [[ $funcstack[1] == _nunchi ]]; then _nunchi \"$@\"; else compdef _nunchi nunchi; "
         "fi\n";
}

namespace {

std::string fish_quoted(std::string_view text) {
  return "'" + replaced(text, "'\\", [](char c) { return std::string("\\") + c; }) + "'";
}

std::string fish_value(const CLI::Option& option, const std::string& completion) {
  if (!takes_value(option)) return "";
  const std::string required = value_is_optional(option) ? "" : " -r";
  if (completion == kCompleteFiles) return required + " -F";
  if (completion == kCompleteFolders) return required + " -a '(__fish_complete_directories)'";
  return required + (completion.empty() ? "" : " -a " + fish_quoted(completion));
}

std::string fish_option(const Command& command, CLI::Option& option) {
  const std::string completion = completion_of(option);
  const std::string start = fmt::format("complete -c nunchi -n '__nunchi_command_is {}'",
                                        command.words.empty() ? "\"\"" : command.words);
  std::string line;
  if (option.get_positional()) {
    const std::string offer =
        completion == kCompleteFolders ? "(__fish_complete_directories)" : completion;
    if (completion == kCompleteFiles) {
      line = start + " -F\n";
    } else if (!completion.empty()) {
      line = start + " -a " + fish_quoted(offer) + "\n";
    }
  }
  if (flags_of(option).empty()) return line;
  line += start;
  for (const std::string& name : option.get_snames()) line += " -s " + name;
  for (const std::string& name : option.get_lnames()) line += " -l " + name;
  return line + fish_value(option, completion) + " -d " + fish_quoted(option.get_description()) +
         "\n";
}

}  // namespace

std::string fish_completion(CLI::App& program) {
  std::string script =
      fmt::format(R"(# fish completion of nunchi. Written by: nunchi completion fish
function __nunchi_command_is
  set -l command ''
  set -l words (commandline -opc)
  set -e words[1]
  for word in $words
    switch "$command $word"
      case {}
        set command (string trim "$command $word")
    end
  end
  test "$command" = "$argv"
end
complete -c nunchi -f
complete -c nunchi -n '__nunchi_command_is ""' -a help -d 'Show the options of a command'
)",
                  command_patterns(program, " "));
  for (const Command& command : all_commands(program)) {
    for (CLI::App* subcommand : commands_of(*command.app)) {
      script += fmt::format("complete -c nunchi -n '__nunchi_command_is {}' -a {} -d {}\n",
                            command.words.empty() ? "\"\"" : command.words, subcommand->get_name(),
                            fish_quoted(summary_of(*subcommand)));
    }
    for (CLI::Option* option : options_of(*command.app)) script += fish_option(command, *option);
  }
  return script;
}

}  // namespace nunchi::cli
