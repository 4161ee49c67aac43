// Phrases that a target must contain, as tokens. kernels/required_phrases.h says how a search finds
// such targets.
#pragma once

#include <cstdint>
#include <vector>

#include "nunchi/decoding/search_options.h"
#include "nunchi/kernels/required_phrases.h"
#include "nunchi/text/tokens.h"

namespace nunchi {

// A phrase in one or two forms, for example with the tokens that it has after a space and with
// those that it has after a bracket. A target must contain one of them.
struct RequiredPhrase {
  std::vector<Tokens> forms;
};
// A phrase that occurs twice must be contained twice, without overlap.
using RequiredPhrases = std::vector<RequiredPhrase>;

inline constexpr int kMaxRequiredPhrases = kernels::UnitPhrases::kMaxPhrases;
inline constexpr int kMaxRequiredTokens = kernels::UnitPhrases::kMaxTokens;  // of all forms

// Throws Error for too many or empty phrases, for tokens outside of the vocabulary, and if the
// options do not allow phrases: they need a beam of at least 2.
void check(const RequiredPhrases& phrases, std::int64_t vocabulary, const SearchOptions& options);

// The fewest tokens that contain all phrases.
std::int64_t least_tokens(const RequiredPhrases& phrases);

// Checked phrases as the device reads them.
kernels::UnitPhrases packed(const RequiredPhrases& phrases);

}  // namespace nunchi
