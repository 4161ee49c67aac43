#include "nunchi/evaluation/tokenizer_13a.h"

#include "nunchi/evaluation/western_punctuation.h"

namespace nunchi::evaluation {

std::string tokenized_13a(std::string_view line) {
  std::string text(line);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  decode_entities(text);
  // Spaces at both ends give the first and the last character a neighbour.
  return with_spaced_points(" " + with_spaced_punctuation(text) + " ");
}

}  // namespace nunchi::evaluation
