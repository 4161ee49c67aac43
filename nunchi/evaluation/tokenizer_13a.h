// The tokenizer of mteval-v13a, NIST's scoring script: the usual one for BLEU.
#pragma once

#include <string>
#include <string_view>

namespace nunchi::evaluation {

// The line with spaces between its words. `line` is UTF-8 without white space at its end; only
// ASCII characters are split off.
std::string tokenized_13a(std::string_view line);

}  // namespace nunchi::evaluation
