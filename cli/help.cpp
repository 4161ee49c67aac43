#include "cli/help.h"

#include <sstream>
#include <vector>

#include "cli/describe.h"
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

std::string description_of(const CLI::App& app) {
  std::istringstream paragraphs(app.get_description());
  std::string text;
  for (std::string line; std::getline(paragraphs, line);) text += wrap(line, {});
  return text;
}

}  // namespace

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode /*mode*/) const {
  std::string help = description_of(*app) + "\nUsage: " + usage_of(*app, name) + "\n";

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
  for (const std::string& group : option_groups_of(*app)) {
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
