#include "cli/describe.h"

#include <sstream>
#include <string_view>

namespace nunchi::cli {
namespace {

// CLI11 joins placeholder and validators to "N:a whole number from 1 to 4096"; this is what follows
// the colon.
std::string value_words_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t colon = type.find(':');
  return colon == type.npos ? "" : type.substr(colon + 1);
}

}  // namespace

std::vector<CLI::App*> commands_of(CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::vector<CLI::Option*> options_of(CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

std::string summary_of(const CLI::App& app) {
  const std::string text = app.get_description();
  return text.substr(0, text.find('\n'));
}

std::vector<std::string> paragraphs_of(const CLI::App& app) {
  std::istringstream text(app.get_description());
  std::vector<std::string> paragraphs;
  std::string line;
  std::getline(text, line);  // the summary
  while (std::getline(text, line)) {
    if (!line.empty()) paragraphs.push_back(line);
  }
  return paragraphs;
}

std::string usage_of(const CLI::App& app, const std::string& name) {
  if (app.get_require_subcommand_min() > 0) return name + " COMMAND";
  std::string usage = name + " [OPTIONS]";
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const std::string word = option->get_name(true, false) + (is_repeatable(*option) ? "..." : "");
    usage += option->get_required() ? " " + word : " [" + word + "]";
  }
  return usage;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }
bool value_is_optional(const CLI::Option& option) { return option.get_items_expected_min() == 0; }
bool is_repeatable(const CLI::Option& option) { return option.get_items_expected_max() > 1; }

std::string placeholder_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  return flags;
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names = flags_of(option);
  if (option.get_positional()) names.insert(names.begin(), option.get_name(true, false));
  return names;
}

Description description_of(const CLI::Option& option) {
  Description description{.sentence = option.get_description(), .values = {}};
  if (!takes_value(option)) return description;
  std::string values = value_words_of(option);
  const std::string fallback = option.get_default_str();
  if (!fallback.empty() && fallback != "[]" && !option.get_required()) {
    values += value_is_optional(option) ? "; without " + placeholder_of(option) + ": "
                                        : std::string("; default: ");
    values += fallback;
  }
  description.values = "[" + values + "]";
  return description;
}

std::string completion_of(CLI::Option& option) {
  // OptionGroup gives an option that takes values one validator, named after the completion.
  if (!takes_value(option) || option.get_type_name().find(':') == std::string::npos) return {};
  return option.get_validator(0)->get_name();
}

std::vector<std::string> option_groups_of(const CLI::App& app) {
  constexpr std::string_view kGeneral = "Options";  // CLI11's group of --help and --version
  std::vector<std::string> groups = groups_of(app.get_options());
  std::stable_partition(groups.begin(), groups.end(),
                        [&](const auto& group) { return group != kGeneral; });
  return groups;
}

}  // namespace nunchi::cli
