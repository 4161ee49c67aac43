// Texts as token ids, and special tokens, which represent no text. The ids of special tokens are
// data of a tokenizer and of a model folder: no code assumes fixed numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace nunchi {

// The token ids of one sentence.
using Tokens = std::vector<std::int32_t>;

// The value of a special token that does not exist.
inline constexpr std::int32_t kNoToken = -1;

// The special tokens of a tokenizer.
struct SpecialTokens {
  std::int32_t unknown = kNoToken;  // <unk>, for text that the tokenizer does not know
  std::int32_t begin = kNoToken;    // <s>
  std::int32_t end = kNoToken;      // </s>
  std::int32_t pad = kNoToken;      // <pad>

  bool contains(std::int32_t id) const {
    return id != kNoToken && (id == unknown || id == begin || id == end || id == pad);
  }
  bool operator==(const SpecialTokens&) const = default;
};

// The ids that a new tokenizer gets by default.
inline constexpr SpecialTokens kUsualSpecialTokens = {.unknown = 0, .begin = 1, .end = 2};

// The special tokens of a decoder.
struct DecoderTokens {
  // The decoder reads it before the first token of a target. kNoToken: each text starts with a
  // prompt instead.
  std::int32_t start = kNoToken;
  // Ends a target. kNoToken: a text ends only at its maximum length.
  std::int32_t end = kNoToken;
  // Every target starts with it: a language code, for example. kNoToken: no token is forced.
  std::int32_t forced_first = kNoToken;
  Tokens suppressed = {};  // never generated; ascending

  // The tokens that the decoder must generate for `target`, without the end: forced_first comes
  // first.
  Tokens with_forced_first(std::span<const std::int32_t> target) const {
    Tokens all;
    if (forced_first != kNoToken) all.push_back(forced_first);
    all.insert(all.end(), target.begin(), target.end());
    return all;
  }
  // Adds to the suppressed tokens; the end token and kNoToken are ignored.
  void suppress(std::span<const std::int32_t> ids) {
    for (const std::int32_t id : ids) {
      if (id != kNoToken && id != end) suppressed.push_back(id);
    }
    std::ranges::sort(suppressed);
    suppressed.erase(std::unique(suppressed.begin(), suppressed.end()), suppressed.end());
  }
  bool operator==(const DecoderTokens&) const = default;
};

// The usual decoder over a tokenizer: it starts with <s> or, where the tokenizer has none, with
// <pad>, or else with </s>. It never generates <s>, <pad> or the token that it starts with.
inline DecoderTokens decoder_tokens(const SpecialTokens& special) {
  DecoderTokens tokens{.start = special.begin != kNoToken ? special.begin
                                : special.pad != kNoToken ? special.pad
                                                          : special.end,
                       .end = special.end};
  tokens.suppress(std::vector{special.begin, special.pad, tokens.start});
  return tokens;
}

// <s> text </s>, with the text cut so that the result has at most `max_length` tokens. `max_length`
// must be at least 2.
inline Tokens enclosed(std::span<const std::int32_t> text, const SpecialTokens& special,
                       std::int64_t max_length) {
  const auto kept = text.first(std::min(text.size(), static_cast<std::size_t>(max_length - 2)));
  Tokens all{special.begin};
  all.insert(all.end(), kept.begin(), kept.end());
  all.push_back(special.end);
  return all;
}

}  // namespace nunchi
