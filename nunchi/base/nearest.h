// The known word that is most similar to a misspelt one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace nunchi {

// The candidate with the fewest edits to `word`; empty if none is similar enough to suggest.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace nunchi
