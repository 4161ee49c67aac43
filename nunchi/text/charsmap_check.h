// SentencePiece's compiled rewriting rules, checked before the library walks them.
//
//   u32        bytes of the trie, little-endian
//   u32[...]   the trie, a double array of darts-clone: a unit holds a label (or a value), the
//              offset to its children and whether it ends a rule
//   char[...]  what the rules write, each text ended by a zero byte; a rule's value is its place
//
// The library trusts every offset in it.
#pragma once

#include <string_view>

namespace nunchi {

// Returns if no text can make the library read outside of `charsmap`, write more than 64 bytes for
// a character, or write what is not UTF-8. Throws Error, without a file's name, otherwise.
void check_charsmap(std::string_view charsmap);

}  // namespace nunchi
