// SentencePiece's compiled rewriting rules, checked before the library walks them.
//
//   u32        bytes of the trie, little-endian
//   u32[...]   the trie, a double array of darts-clone: a unit holds a label (or a value), the
//              offset to its children and whether it ends a rule
//   char[...]  the outputs of the rules, each ended by a zero byte; a rule's value is the offset of
//              its output
//
// The library trusts every offset in it.
#pragma once

#include <string_view>

namespace nunchi {

// Throws Error, whose message does not name a file, if any text could make the library read outside
// of `charsmap`, write more than 64 bytes for a character, or write invalid UTF-8.
void check_charsmap(std::string_view charsmap);

}  // namespace nunchi
