#include "cli/help.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <vector>

#include "nunchi/text/unicode.h"

namespace nunchi::cli {
namespace {

constexpr int kColumns = 80;
constexpr int kOptionColumn = 28;   // where the text of an option begins
constexpr int kCommandColumn = 14;  // where the summary of a command begins

struct Layout {
  int begin = 0;   // the column where the first line starts
  int indent = 0;  // the column where all other lines start
};

// Wraps the text in lines of at most kColumns columns.
std::string wrap(const std::string& text, const Layout& layout) {
  std::istringstream words(text);
  std::string lines;
  int column = layout.begin;
  bool first = true;
  for (std::string word; words >> word; first = false) {
    const int width = display_width(word);
    if (!first && column + 1 + width > kColumns) {
      lines += "\n" + std::string(static_cast<std::size_t>(layout.indent), ' ');
      column = layout.indent;
    } else if (!first) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += width;
  }
  return lines + "\n";
}

// The second column of a help line: a sentence and, for an option, its values in brackets.
struct Description {
  std::string sentence;
  std::string values;
};

// One row of the help: `left` in the first column and the description in the second, which starts
// on the next line if `left` is too wide. The values also get a new line unless they fit after the
// sentence.
std::string row(const std::string& left, const Description& right, int column) {
  const std::string indent(static_cast<std::size_t>(column), ' ');
  const int width = display_width(left);
  const bool fits = width + 2 <= column;
  std::string text = left + (fits ? indent.substr(static_cast<std::size_t>(width)) : "\n" + indent);
  text += wrap(right.sentence, {.begin = column, .indent = column});
  if (right.values.empty()) return text;
  text.pop_back();
  const int last_line = display_width(text.substr(text.rfind('\n') + 1));
  const bool same_line = last_line + 1 + display_width(right.values) <= kColumns;
  if (same_line) return text + " " + right.values + "\n";
  return text + "\n" + indent + wrap(right.values, {.begin = column, .indent = column});
}

// CLI11 joins placeholder and validators to "N:a whole number from 1 to 4096"; this is the "N".
std::string placeholder_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

std::string value_words_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t colon = type.find(':');
  return colon == type.npos ? "" : type.substr(colon + 1);
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }
bool value_is_optional(const CLI::Option& option) { return option.get_items_expected_min() == 0; }

std::string name_of(const CLI::Option& option) {
  if (option.get_positional()) {
    std::string names = "  " + option.get_name(true, false);
    for (const std::string& name : option.get_snames()) names += ", -" + name;
    for (const std::string& name : option.get_lnames()) names += ", --" + name;
    return names;
  }
  const bool has_short = !option.get_snames().empty();
  std::string name = has_short ? "  -" + option.get_snames().front() : "    ";
  if (!option.get_lnames().empty()) {
    name += (has_short ? ", --" : "  --") + option.get_lnames().front();
  }
  if (!takes_value(option)) return name;
  const std::string placeholder = placeholder_of(option);
  return name + (value_is_optional(option) ? " [" + placeholder + "]" : " " + placeholder);
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

std::string usage_of(const CLI::App& app, const std::string& name) {
  std::string usage = "Usage: " + name;
  if (app.get_require_subcommand_min() > 0) return usage + " COMMAND\n";
  usage += " [OPTIONS]";
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const bool many = option->get_items_expected_max() > 1;
    const std::string word = option->get_name(true, false) + (many ? "..." : "");
    usage += option->get_required() ? " " + word : " [" + word + "]";
  }
  return usage + "\n";
}

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

std::string summary_of(const CLI::App& app) {
  const std::string text = app.get_description();
  return text.substr(0, text.find('\n'));
}

std::string description_of(const CLI::App& app) {
  std::istringstream paragraphs(app.get_description());
  std::string text;
  for (std::string line; std::getline(paragraphs, line);) text += wrap(line, {});
  return text;
}

}  // namespace

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode /*mode*/) const {
  constexpr std::string_view kGeneral = "Options";  // CLI11's group of --help and --version
  std::string help = description_of(*app) + "\n" + usage_of(*app, name);

  const std::vector<const CLI::App*> commands =
      app->get_subcommands([](const CLI::App*) { return true; });
  for (const std::string& group : groups_of(commands)) {
    help += "\n" + group + ":\n";
    for (const CLI::App* command : commands) {
      if (command->get_group() != group) continue;
      help += row("  " + command->get_name(), {summary_of(*command), ""}, kCommandColumn);
    }
  }

  const std::vector<const CLI::Option*> options = app->get_options();
  std::vector<std::string> groups = groups_of(options);
  std::stable_partition(groups.begin(), groups.end(),
                        [&](const auto& group) { return group != kGeneral; });
  for (const std::string& group : groups) {
    help += "\n" + group + ":\n";
    for (const CLI::Option* option : options) {
      if (option->get_group() == group)
        help += row(name_of(*option), description_of(*option), kOptionColumn);
    }
  }
  if (!app->get_footer().empty()) help += "\n" + app->get_footer() + "\n";
  return help;
}

}  // namespace nunchi::cli
