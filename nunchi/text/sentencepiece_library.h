// Declarations for the files that call SentencePiece.
#pragma once

#include <sentencepiece_processor.h>

// The library exports this function, but none of its installed headers declares it.
namespace sentencepiece::logging {
void SetMinLogLevel(int level);  // NOLINT(readability-identifier-naming): the library's name
}

namespace nunchi {

// Keeps the library from writing to stderr; errors are returned as a status. Level 3 leaves the
// message of a fatal error.
inline void silence_sentencepiece() { sentencepiece::logging::SetMinLogLevel(3); }

}  // namespace nunchi
