// Words out of the pieces that tokenizers cut them into.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace nunchi {

struct Words {
  std::vector<std::string> texts;
  std::vector<int> sizes;     // pieces of each word
  std::vector<int> of_piece;  // the word that a piece belongs to
};

// Pieces are joined from one that begins with "▁" (as SentencePiece marks words) up to the next;
// "<0xEA>" is its byte; <s> and </s> stay by themselves. A word of a space alone is shown as "▁".
Words words_of(std::span<const std::string> pieces);

}  // namespace nunchi
