// Declarations for the files that call SentencePiece.
#pragma once

#include <sentencepiece_processor.h>

// The library exports this function, but none of its installed headers declares it.
namespace sentencepiece::logging {
void SetMinLogLevel(int level);  // NOLINT(readability-identifier-naming): the library's name
}

namespace nunchi {

// Keeps the library from writing to stderr, except for fatal errors (level 3). Other errors are
// returned as a status.
inline void silence_sentencepiece() { sentencepiece::logging::SetMinLogLevel(3); }

}  // namespace nunchi
