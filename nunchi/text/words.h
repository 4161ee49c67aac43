// Joins the pieces of a tokenizer into words.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace nunchi {

struct Words {
  std::vector<std::string> texts;
  std::vector<int> sizes;     // number of pieces in each word
  std::vector<int> of_piece;  // the index of the word that contains each piece
};

// A word begins with a piece that starts with "▁", SentencePiece's mark, and ends before the next
// such piece. "<0xEA>" is a byte; <s> and </s> are separate words. A word that is only a space
// is displayed as "▁".
Words words_of(std::span<const std::string> pieces);

}  // namespace nunchi
