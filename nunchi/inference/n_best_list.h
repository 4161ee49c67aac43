// Lists of candidate translations, one on each line, as nunchi translate, Marian and Moses write
// them: `id ||| text ||| features ||| score`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nunchi {

struct NBestEntry {
  std::int64_t id = 0;  // number of the source line, from 0
  std::string text;
  std::string features;  // "NAME= VALUE…", separated by spaces
  std::string score;
};

// Reads one line. Features and score may be missing; fields after the score are dropped. Throws
// Error, which begins with `where`, if the line has no id or no text.
NBestEntry parse_n_best(std::string_view line, const std::string& where);

// The line, with its line break.
std::string to_text(const NBestEntry& entry);

}  // namespace nunchi
