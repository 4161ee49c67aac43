// Hypotheses and references from files: one line each, the same number of lines everywhere.
#pragma once

#include <cstdint>
#include <string>

#include "nunchi/evaluation/statistics.h"

namespace nunchi::evaluation {

// A text and the name that complaints call it by.
struct TextFile {
  std::string name;
  Lines lines;
  std::int64_t repaired = 0;  // lines with invalid UTF-8, whose bad parts are now U+FFFD
};

// Reads a plain, gzip or xz file as LineReader does (a byte order mark is left out); "-" is the
// standard input. Throws Error when it cannot be read, holds nothing, or has a line that is longer
// than kLongestLine.
TextFile read_text(const std::string& path);

// Throws Error with both names and counts unless `other` has as many lines as `text`.
void check_same_lines(const TextFile& text, const TextFile& other);

}  // namespace nunchi::evaluation
