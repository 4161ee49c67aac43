#include "nunchi/text/mask_symbol.h"

#include <algorithm>
#include <string>

#include "nunchi/base/error.h"

namespace nunchi {

std::optional<std::int32_t> find_mask_token(const Tokenizer& tokenizer) {
  for (std::int32_t id = 0; id < tokenizer.vocabulary(); ++id) {
    if (std::ranges::find(kMaskSymbols, tokenizer.piece(id)) != kMaskSymbols.end()) return id;
  }
  return std::nullopt;
}

std::int32_t mask_token(const Tokenizer& tokenizer) {
  if (const auto found = find_mask_token(tokenizer)) return *found;
  throw Error(
      "the tokenizer has no symbol for a masked token, neither [MASK] nor <mask>. Learn one that "
      "has: 'tokenizer.symbols: [\"[MASK]\"]', or 'nunchi tokenizer train --symbol [MASK]'.");
}

}  // namespace nunchi
