// Learning a tokenizer from text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nunchi/text/tokens.h"

namespace nunchi {

// The first two are SentencePiece's; see text/plain_tokenizer.h for the others.
enum class TokenizerKind { bpe, unigram, characters, bytes };

struct TokenizerOptions {
  TokenizerKind kind = TokenizerKind::bpe;
  // Tokens in all: the special tokens, the symbols, the bytes and the pieces. An upper bound for
  // characters; bytes have as many as they have.
  std::int64_t vocabulary = 32000;
  // The ids of the special tokens; only begin and pad may be missing. Characters and bytes have the
  // usual ones.
  SpecialTokens special = kUsualSpecialTokens;
  // Characters that are in no piece are encoded as their bytes instead of <unk>.
  bool byte_fallback = true;
  // So much of the text's characters, the most frequent ones, get a piece; 0.98 to 1.
  double character_coverage = 1.0;
  // Each is always one token, wherever it stands in a text.
  std::vector<std::string> symbols;
  bool split_digits = false;  // every digit is a token of its own
  // More lines are sampled; so is text of more than 120 MiB.
  std::int64_t max_lines = 2'000'000;
};

struct LearnedTokenizer {
  std::string bytes;  // of the file
  std::int64_t lines = 0;
  std::int64_t lines_used = 0;  // fewer where it was sampled; empty ones do not count
};

// Puts the next line into its argument; false when there is none.
using NextLine = std::function<bool(std::string&)>;

// Lines may be any bytes: they are repaired and brought to NFC, control characters count as spaces.
// The same lines and options give the same bytes; which lines are sampled depends on their number
// alone. Throws UsageError for options that cannot be and Error when the text does not hold what is
// asked for, with the vocabulary that is possible. What `next_line` throws goes through.
LearnedTokenizer learn_tokenizer(const TokenizerOptions& options, const NextLine& next_line);

}  // namespace nunchi
