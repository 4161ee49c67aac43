// Steps that the tokenizers 13a, zh and tercom share: they put spaces around ASCII punctuation.
// All take and return UTF-8 and change ASCII characters only.
#pragma once

#include <string>
#include <string_view>

namespace nunchi::evaluation {

// Replaces every `from`, scanning from the left.
void replace_all(std::string& text, std::string_view from, std::string_view to);

// Replaces &quot; &amp; &lt; and &gt; in this order: "&amp;lt;" becomes "<".
void decode_entities(std::string& text);

// Puts spaces around every ASCII punctuation mark except ' , - and .
std::string with_spaced_punctuation(std::string_view text);

// Puts spaces around a period or comma unless it is between digits, and around a hyphen after a
// digit. A period or comma at the very beginning or end of `text` has no neighbour on that side and
// is decided by the other one.
std::string with_spaced_points(std::string_view text);

}  // namespace nunchi::evaluation
