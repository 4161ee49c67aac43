#include "nunchi/decoding/required_phrases.h"

#include <algorithm>
#include <string>

#include "nunchi/base/error.h"

namespace nunchi {

void check(const RequiredPhrases& phrases, std::int64_t vocabulary, const SearchOptions& options) {
  if (phrases.empty()) return;
  const auto require = [](bool holds, const std::string& message) {
    if (!holds) throw Error(message);
  };
  require(!options.sample && options.beam_size >= 2,
          "required phrases need a beam search with a beam of at least 2.");
  require(std::ssize(phrases) <= kMaxRequiredPhrases,
          "a sentence has " + std::to_string(phrases.size()) + " required phrases, but at most " +
              std::to_string(kMaxRequiredPhrases) + " are possible.");
  std::size_t tokens = 0;
  for (const RequiredPhrase& phrase : phrases) {
    require(!phrase.forms.empty() && phrase.forms.size() <= kernels::UnitPhrases::kForms,
            "a required phrase needs one or two forms.");
    for (const Tokens& form : phrase.forms) {
      require(!form.empty(), "a required phrase has no tokens.");
      tokens += form.size();
      for (const std::int32_t id : form) {
        require(id >= 0 && id < vocabulary,
                "a required phrase contains token " + std::to_string(id) +
                    ", which is not in a vocabulary of " + std::to_string(vocabulary) + ".");
      }
    }
  }
  require(tokens <= static_cast<std::size_t>(kMaxRequiredTokens),
          "the required phrases of a sentence have " + std::to_string(tokens) +
              " tokens in all forms, but at most " + std::to_string(kMaxRequiredTokens) +
              " are possible.");
}

std::int64_t least_tokens(const RequiredPhrases& phrases) {
  const kernels::UnitPhrases unit = packed(phrases);
  std::int64_t tokens = 0;
  for (int i = 0; i < unit.count; ++i) tokens += unit.shortest_form(i);
  return tokens;
}

kernels::UnitPhrases packed(const RequiredPhrases& phrases) {
  kernels::UnitPhrases unit;
  std::int32_t taken = 0;
  for (const RequiredPhrase& phrase : phrases) {
    for (int f = 0; f < kernels::UnitPhrases::kForms; ++f) {
      const int n = unit.count * kernels::UnitPhrases::kForms + f;
      if (static_cast<std::size_t>(f) < phrase.forms.size()) {
        for (const std::int32_t id : phrase.forms[static_cast<std::size_t>(f)]) {
          unit.tokens[taken++] = id;
        }
      }
      unit.begin[n + 1] = taken;
    }
    ++unit.count;
  }
  return unit;
}

}  // namespace nunchi
