// The tokenizer that SentencePiece models (.spm) describe: BPE, unigram or characters.
//
// Invalid UTF-8 is replaced, the text is normalised to NFC and then cut into pieces. Spaces at the
// ends of a text are dropped, and several in a row become one. ▁ (U+2581) represents a space in
// pieces and is treated as a space in texts. A character without a piece becomes its bytes, or
// <unk> when the model has no byte pieces.
#pragma once

#include <memory>
#include <string>

#include "nunchi/text/tokenizer.h"

namespace nunchi {

// A tokenizer from the bytes of a file, which messages call `name`. Throws Error when they are not
// a usable model (see text/sentencepiece_check.h).
std::unique_ptr<Tokenizer> make_sentencepiece(std::string bytes, const std::string& name);

}  // namespace nunchi
