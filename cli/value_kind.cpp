#include "cli/value_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace nunchi::cli {
namespace {

ValueKind number_that(const std::string& words, std::function<bool(double)> accepts) {
  return {"X", words, [accepts = std::move(accepts)](const std::string& text) {
            char* end = nullptr;
            const double value = std::strtod(text.c_str(), &end);
            const bool is_number = end != text.c_str() && *end == '\0' && std::isfinite(value);
            return is_number && accepts(value);
          }};
}

}  // namespace

ValueKind whole_number(std::int64_t low, std::int64_t high) {
  return {"N", fmt::format("a whole number from {} to {}", low, high),
          [=](const std::string& text) {
            std::int64_t value = 0;
            const char* end = text.data() + text.size();
            const auto parsed = std::from_chars(text.data(), end, value);
            return parsed.ec == std::errc() && parsed.ptr == end && value >= low && value <= high;
          }};
}

ValueKind number(double low, double high) {
  const std::string limit = high == kNoLimit ? "" : fmt::format(" to {}", high);
  return number_that(fmt::format("a number from {}{}", low, limit),
                     [=](double value) { return value >= low && value <= high; });
}

ValueKind number_above(double low, double high) {
  const std::string limit = high == kNoLimit ? "" : fmt::format(" and up to {}", high);
  return number_that(fmt::format("a number above {}{}", low, limit),
                     [=](double value) { return value > low && value <= high; });
}

ValueKind number_below(double low, double high) {
  return number_that(fmt::format("a number from {} and below {}", low, high),
                     [=](double value) { return value >= low && value < high; });
}

// Below 2^63, as in config files.
ValueKind seed() {
  ValueKind kind = whole_number(0, std::numeric_limits<std::int64_t>::max());
  kind.words = "a whole number from 0 to 2^63 - 1";
  return kind;
}

ValueKind one_of(const std::vector<std::string>& names, const std::string& placeholder) {
  std::string words;
  for (std::size_t i = 0; i < names.size(); ++i) {
    words += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  }
  const auto accepts = [names](const std::string& value) {
    return std::ranges::find(names, value) != names.end();
  };
  return {placeholder, words, accepts, fmt::format("{}", fmt::join(names, " "))};
}

ValueKind text(const std::string& placeholder, const std::string& words) {
  const auto mention = [&](const char* thing) { return words.find(thing) != words.npos; };
  const char* completion = placeholder == "FILE" || mention("file") ? kCompleteFiles
                           : mention("folder")                      ? kCompleteFolders
                                                                    : "";
  return {placeholder, words, {}, completion};
}

ValueKind input_file() {
  return text("FILE", "a text file, plain, .gz or .xz, or - for standard input");
}

ValueKind output_file() { return text("FILE", "a file, or - for standard output"); }

ValueKind model_folder() { return text("MODEL", "a folder"); }

}  // namespace nunchi::cli
