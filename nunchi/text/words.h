// Joins the pieces of a tokenizer into words.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nunchi {

struct Words {
  std::vector<std::string> texts;
  std::vector<int> sizes;          // number of pieces in each word
  std::vector<int> word_of_piece;  // the index of the word that contains each piece
};

// A target word and a source word that it translates: indices of words, from 0.
struct WordLink {
  int source = 0, target = 0;
  bool operator==(const WordLink&) const = default;
};

// Whether the last piece of a sentence is its end token, whose name the tokenizer decides.
enum class LastPiece : std::uint8_t { text, end_token };

// A word begins with a piece that starts with "▁", SentencePiece's mark, and ends before the next
// such piece. "<0xEA>" is a byte; an end token is a separate word. A word that is only a space is
// displayed as "▁".
Words words_of(std::span<const std::string> pieces, LastPiece last = LastPiece::text);

}  // namespace nunchi
