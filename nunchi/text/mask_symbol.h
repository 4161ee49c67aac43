// The symbol that stands for a token that was taken out of a text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "nunchi/text/tokenizer.h"

namespace nunchi {

// Either will do; a tokenizer that is learned gets the first.
inline constexpr std::array<std::string_view, 2> kMaskSymbols = {"[MASK]", "<mask>"};

// The tokenizer's number of it; nothing where it knows neither.
std::optional<std::int32_t> find_mask_token(const Tokenizer& tokenizer);
// The same. Throws Error, saying how to get one, where there is none.
std::int32_t mask_token(const Tokenizer& tokenizer);

}  // namespace nunchi
