#include "cli/man_page.h"

#include <fmt/format.h>

#include <sstream>

#include "cli/describe.h"
#include "nunchi/base/version.h"

namespace nunchi::cli {
namespace {

// Text as man reads it: no character of it is a command of troff, and hyphens can be copied.
std::string roff(const std::string& text) {
  std::string result;
  bool starts_line = true;
  for (const char c : text) {
    if (starts_line && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
    starts_line = c == '\n';
  }
  return result;
}

std::string option_entry(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : names_of(option)) {
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
  }
  if (takes_value(option) && !option.get_positional()) {
    const std::string placeholder = "\\fI" + roff(placeholder_of(option)) + "\\fR";
    names += value_is_optional(option) ? " [" + placeholder + "]" : " " + placeholder;
  }
  const Description description = description_of(option);
  std::string text = ".TP\n" + names + "\n" + roff(description.sentence) + "\n";
  if (!description.values.empty()) text += roff(description.values) + "\n";
  return text;
}

std::string option_entries(CLI::App& app) {
  std::string text;
  for (const std::string& group : option_groups_of(app)) {
    text += ".PP\n" + roff(group) + ":\n";
    for (const CLI::Option* option : options_of(app)) {
      if (option->get_group() == group) text += option_entry(*option);
    }
  }
  return text;
}

std::string examples(const CLI::App& app) {
  std::istringstream footer(app.get_footer());
  std::string text, line;
  if (!std::getline(footer, line) || line != "Examples:") return "";
  while (std::getline(footer, line)) text += roff(line) + "\n";
  return ".PP\nExamples:\n.PP\n.nf\n" + text + ".fi\n";
}

std::string section(CLI::App& command, const std::string& name) {
  std::string text;
  if (commands_of(command).empty()) {
    text += ".SS \"" + roff(name) + "\"\n" + roff(summary_of(command)) + ".\n";
    for (const std::string& paragraph : paragraphs_of(command))
      text += ".PP\n" + roff(paragraph) + "\n";
    text += ".PP\n\\fB" + roff(usage_of(command, name)) + "\\fR\n";
    text += option_entries(command) + examples(command);
  }
  for (CLI::App* subcommand : commands_of(command)) {
    text += section(*subcommand, name + " " + subcommand->get_name());
  }
  return text;
}

}  // namespace

std::string man_page(CLI::App& program) {
  std::string page = fmt::format(".TH NUNCHI 1 \"\" \"nunchi {}\" \"User Commands\"\n", version());
  page += ".SH NAME\nnunchi \\- train and use Transformers, from raw text to translation\n";
  page += ".SH SYNOPSIS\n\\fBnunchi\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n";
  page += ".SH DESCRIPTION\n" + roff(program.get_description()) + ".\n";
  page += "Data goes to standard output, everything else to standard error.\n";
  page += ".SH OPTIONS\n" + option_entries(program);
  page += ".SH COMMANDS\n";
  for (CLI::App* command : commands_of(program)) {
    page += section(*command, "nunchi " + command->get_name());
  }
  page +=
      ".SH EXIT STATUS\n0 if the command succeeded, 1 if it failed, 2 if it was called wrongly.\n";
  return page;
}

}  // namespace nunchi::cli
