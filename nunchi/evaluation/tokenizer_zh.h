// sacreBLEU's tokenizer for Chinese.
#pragma once

#include <string>
#include <string_view>

namespace nunchi::evaluation {

// The line with spaces between its words: every Chinese character is a word, and the rest is split
// at ASCII punctuation. `line` is valid UTF-8 without white space at its ends.
std::string tokenized_zh(std::string_view line);

}  // namespace nunchi::evaluation
