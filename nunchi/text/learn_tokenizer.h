// Learns a tokenizer from text.
#pragma once

#include <atomic>
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
  // All tokens: special tokens, symbols, bytes and pieces. For characters it is an upper bound;
  // bytes ignore it.
  std::int64_t vocabulary = 32000;
  // The ids of the special tokens; only begin and pad may be missing. Characters and bytes allow
  // only the usual ids.
  SpecialTokens special = kUsualSpecialTokens;
  // Characters without a piece are encoded as their bytes instead of <unk>.
  bool byte_fallback = true;
  // The most frequent characters get pieces until they cover this fraction of the text; 0.98 to 1.
  double character_coverage = 1.0;
  // User-defined symbols: each is always one token, wherever it occurs in a text.
  std::vector<std::string> symbols;
  bool split_digits = false;  // every digit is a separate token
  // Upper bound for the lines used; more lines, or more than 120 MiB of text, are sampled.
  std::int64_t max_lines = 2'000'000;
};

struct LearnedTokenizer {
  std::string bytes;            // the contents of the tokenizer's file
  std::int64_t lines = 0;       // lines read
  std::int64_t lines_used = 0;  // lines read, except empty ones and those that the sample left out
};

// Stores the next line in its argument; returns false when there is none.
using NextLine = std::function<bool(std::string&)>;

struct LearnProgress {
  // Reading the lines, counting their characters and words, for unigram sorting their substrings,
  // choosing the pieces.
  enum class Stage : std::uint8_t { reading, counting, sorting, learning };
  Stage stage = Stage::reading;
  std::int64_t lines = 0;    // lines read
  std::int64_t counted = 0;  // of these, lines that were counted; `lines` when the words are left
  double fraction = 0;       // how much of `learning` is done, 0 to 1
};

struct LearnHooks {
  // Called from time to time on the calling thread. If it throws, learning ends.
  std::function<void(const LearnProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;  // true: throw Interrupted
};

// Lines may be any bytes: invalid UTF-8 is replaced, text is normalised to NFC, and control
// characters count as spaces. The same lines and options give the same bytes: the sample depends
// only on line numbers. Throws UsageError for invalid options, and Error, with the possible
// vocabulary, when the text is too small for the requested one. Exceptions of `next_line` are
// passed on.
//
// SentencePiece can neither be interrupted nor asked for its progress. With `hooks` it therefore
// runs in a child process (see base/child_process.h), which ends with this call; the result is the
// same. Without hooks it runs on the calling thread.
LearnedTokenizer learn_tokenizer(const TokenizerOptions& options, const NextLine& next_line,
                                 const LearnHooks& hooks = {});

}  // namespace nunchi
