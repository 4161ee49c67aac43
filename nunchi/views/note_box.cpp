#include "nunchi/views/note_box.h"

#include "nunchi/text/unicode.h"
#include "nunchi/views/columns.h"

namespace nunchi {
namespace {

std::string repeated(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

std::string centered(std::string_view text, int width) {
  return spaces((width - display_width(text)) / 2) + std::string(text);
}

}  // namespace

void NoteBoxes::add(std::string_view title, const std::vector<std::string>& lines) {
  if (!text_.empty()) text_ += spaces(width_ / 2 - 1) + "↓\n";
  text_ += "┌" + repeated("─", width_ - 2) + "┐\n";
  text_ += "│" + centered("[" + std::string(title) + "]", width_ - 2) + "\n";
  for (const std::string& line : lines) {
    std::string shown = "│ " + fitted(line, inner_width());
    shown.erase(shown.find_last_not_of(' ') + 1);
    text_ += shown + "\n";
  }
  text_ += "└" + repeated("─", width_ - 2) + "┘\n";
}

void NoteBoxes::heading(std::string_view text) {
  text_ += (text_.empty() ? "" : "\n") + centered(text, width_) + "\n";
}

std::vector<std::string> wrapped(const std::vector<std::string>& parts, int width, int indent) {
  std::vector<std::string> lines{""};
  for (const std::string& part : parts) {
    std::string& line = lines.back();
    const bool is_first = line.find_first_not_of(' ') == line.npos;
    if (is_first || display_width(line) + 1 + display_width(part) <= width) {
      line += (is_first ? "" : " ") + part;
    } else {
      lines.push_back(spaces(indent) + part);
    }
  }
  return lines;
}

}  // namespace nunchi
