#include "nunchi/evaluation/files.h"

#include <fmt/format.h>

#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"
#include "nunchi/data/lines.h"
#include "nunchi/text/unicode.h"

namespace nunchi::evaluation {

TextFile read_text(const std::string& path) {
  const bool standard_input = path == "-";
  TextFile text{.name = standard_input ? "standard input" : path};
  LineReader reader(standard_input ? "/dev/stdin" : path, {.max_bytes = kMaxLineBytes});
  for (std::string line; reader.next(line);) {
    if (reader.was_cut()) {
      throw Error(fmt::format("{}:{}: the line is longer than {} bytes; is this a text file?",
                              text.name, reader.line_number(), grouped(kMaxLineBytes)));
    }
    if (!is_valid_utf8(line)) {
      line = repaired_utf8(line);
      ++text.repaired;
    }
    text.lines.push_back(line);
  }
  if (text.lines.empty()) throw Error(text.name + " is empty; there is nothing to score.");
  return text;
}

void check_same_lines(const TextFile& text, const TextFile& other) {
  if (text.lines.size() == other.lines.size()) return;
  const auto count = [](const TextFile& file) {
    return grouped(static_cast<std::int64_t>(file.lines.size()));
  };
  throw Error(fmt::format("{} has {} lines but {} has {}. Each line needs exactly one counterpart.",
                          other.name, count(other), text.name, count(text)));
}

}  // namespace nunchi::evaluation
