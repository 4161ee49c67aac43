// The kinds of values that options take. Values are checked when the command line is parsed; the
// help describes them.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace nunchi::cli {

inline constexpr const char* kCompleteFiles = "FILES";
inline constexpr const char* kCompleteFolders = "FOLDERS";

struct ValueKind {
  std::string placeholder;                          // "N", "FILE"
  std::string words;                                // "a whole number from 1 to 4096"
  std::function<bool(const std::string&)> accepts;  // empty: accepts everything
  // What a shell offers for the value: kCompleteFiles, kCompleteFolders, or words with spaces
  // between them; empty: nothing.
  std::string completion = {};
};

ValueKind whole_number(std::int64_t low, std::int64_t high);
// Finite numbers; NaN and infinity are refused. Without `high` there is no upper limit.
constexpr double kNoLimit = std::numeric_limits<double>::infinity();
ValueKind number(double low, double high = kNoLimit);
ValueKind number_above(double low, double high = kNoLimit);  // excludes `low`
ValueKind number_below(double low, double high);             // excludes `high`
ValueKind seed();
ValueKind one_of(const std::vector<std::string>& names, const std::string& placeholder = "NAME");

// Any text; it is not checked. If the placeholder is FILE or `words` mention a file or a folder, a
// shell completes the names of files or folders.
ValueKind text(const std::string& placeholder, const std::string& words);
ValueKind input_file();   // opened by open_input()
ValueKind output_file();  // opened by Output
ValueKind model_folder();

}  // namespace nunchi::cli
