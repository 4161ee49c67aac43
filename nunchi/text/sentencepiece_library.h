// What the two files that call SentencePiece share.
#pragma once

#include <sentencepiece_processor.h>

// The library exports this but declares it in none of the headers that are installed.
namespace sentencepiece::logging {
void SetMinLogLevel(int level);
}

namespace nunchi {

// Its messages would go to stderr; what matters in them comes back as a status. Level 3 leaves the
// last words of a process that it ends, which our checks are there to prevent.
inline void silence_sentencepiece() { sentencepiece::logging::SetMinLogLevel(3); }

}  // namespace nunchi
