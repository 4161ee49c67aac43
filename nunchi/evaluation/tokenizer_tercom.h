// The tokenizer of Tercom, the original program for TER, as sacreBLEU implements it.
#pragma once

#include <string>
#include <string_view>

namespace nunchi::evaluation {

struct TercomOptions {
  bool normalized = false;      // decodes entities and splits off ASCII punctuation
  bool no_punctuation = false;  // removes . , ? : ; ! " ( )
  // With `normalized`, Chinese and Japanese characters and punctuation are words of their own; with
  // `no_punctuation`, their punctuation is removed too. Alone it has no effect.
  bool asian_support = false;
};

// The line with spaces between its words. `line` is valid UTF-8 without white space at its end.
std::string tokenized_tercom(std::string_view line, const TercomOptions& options);

}  // namespace nunchi::evaluation
