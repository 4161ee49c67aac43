// Reads files of hypotheses and references, which must have the same number of lines.
#pragma once

#include <cstdint>
#include <string>

#include "nunchi/evaluation/statistics.h"

namespace nunchi::evaluation {

// A text and its name in messages.
struct TextFile {
  std::string name;
  Lines lines;
  std::int64_t repaired = 0;  // lines whose invalid UTF-8 was replaced by U+FFFD
};

// Reads a plain, gzip or xz file as LineReader does (a byte order mark is dropped); "-" is
// standard input. Throws Error when it cannot be read, is empty, or has a line longer than
// kMaxLineBytes.
TextFile read_text(const std::string& path);

// Throws Error with both names and counts unless `other` has as many lines as `text`.
void check_same_lines(const TextFile& text, const TextFile& other);

}  // namespace nunchi::evaluation
