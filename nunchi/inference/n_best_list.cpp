#include "nunchi/inference/n_best_list.h"

#include <charconv>

#include "nunchi/base/error.h"
#include "nunchi/base/printable.h"

namespace nunchi {
namespace {

constexpr std::string_view kSeparator = "|||";

// Without the spaces at both ends.
std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

// Removes the first field and its separator.
std::string_view take_field(std::string_view& rest) {
  const std::size_t end = rest.find(kSeparator);
  const std::string_view field = trimmed(rest.substr(0, end));
  rest = end == rest.npos ? std::string_view() : rest.substr(end + kSeparator.size());
  return field;
}

}  // namespace

NBestEntry parse_n_best(std::string_view line, const std::string& where) {
  if (line.find(kSeparator) == line.npos) {
    throw Error(where + ": an n-best line is 'id ||| text ||| features ||| score', not '" +
                printable(std::string(line.substr(0, 80))) + "'.");
  }
  std::string_view rest = line;
  const std::string_view id = take_field(rest);
  NBestEntry entry;
  const char* end = id.data() + id.size();
  const auto parsed = std::from_chars(id.data(), end, entry.id);
  if (parsed.ec != std::errc() || parsed.ptr != end || entry.id < 0) {
    throw Error(where + ": '" + printable(std::string(id.substr(0, 80))) +
                "' is not the number of a source line, counted from 0.");
  }
  entry.text = take_field(rest);
  entry.features = take_field(rest);
  entry.score = take_field(rest);
  return entry;
}

std::string to_text(const NBestEntry& entry) {
  return std::to_string(entry.id) + " ||| " + entry.text + " ||| " + entry.features + " ||| " +
         entry.score + "\n";
}

}  // namespace nunchi
