// The tokenizer that SentencePiece models (.spm) describe: BPE, unigram or characters.
//
// A text is repaired, brought to NFC and cut into pieces. Spaces at its ends and all but one of a
// row are dropped; ▁ (U+2581) stands for a space inside of pieces and is one in a text too. A
// character that no piece has becomes its bytes, or <unk> where the model has no byte pieces.
#pragma once

#include <memory>
#include <string>

#include "nunchi/text/tokenizer.h"

namespace nunchi {

// A tokenizer from a file's bytes; `name` stands for them in messages. Throws Error when they are
// no model that can be used (see text/sentencepiece_check.h).
std::unique_ptr<Tokenizer> make_sentencepiece(std::string bytes, const std::string& name);

}  // namespace nunchi
