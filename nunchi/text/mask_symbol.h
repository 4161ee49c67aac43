// The symbol that replaces a masked token of a text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "nunchi/text/tokenizer.h"

namespace nunchi {

// A tokenizer has one of these; a newly learned one gets the first.
inline constexpr std::array<std::string_view, 2> kMaskSymbols = {"[MASK]", "<mask>"};

// The tokenizer's id of the symbol; nullopt when it has neither.
std::optional<std::int32_t> find_mask_token(const Tokenizer& tokenizer);
// The same, but throws Error, with instructions, when the tokenizer has neither.
std::int32_t mask_token(const Tokenizer& tokenizer);

}  // namespace nunchi
