// Unicode's general categories, as the international tokenizer needs them.
#pragma once

#include <cstdint>

namespace nunchi::evaluation {

enum class CharacterClass : std::uint8_t { other, punctuation, symbol, number };

// By the first letter of the character's general category: P is punctuation, S symbol and N number.
// The table is that of Python's regex 2026.11.9, the module that sacreBLEU uses.
CharacterClass character_class(char32_t c);

}  // namespace nunchi::evaluation
