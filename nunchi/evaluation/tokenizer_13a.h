// The tokenizer of mteval-v13a, NIST's scoring script, in which most BLEU scores are given.
#pragma once

#include <string>
#include <string_view>

namespace nunchi::evaluation {

// The line with spaces around what counts as a word of its own. `line` is UTF-8 without white space
// at its end; only ASCII is looked at.
std::string tokenized_13a(std::string_view line);

}  // namespace nunchi::evaluation
