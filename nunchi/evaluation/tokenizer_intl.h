// The international tokenizer of mteval-v14: splits off punctuation and symbols of every script.
#pragma once

#include <string>
#include <string_view>

namespace nunchi::evaluation {

// The line with spaces between its words. Punctuation between digits stays in its word. `line` is
// valid UTF-8 without white space at its end.
std::string tokenized_intl(std::string_view line);

}  // namespace nunchi::evaluation
