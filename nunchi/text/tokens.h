// Texts as token ids, and the ids that stand for no text. Which ids those are is data of a
// tokenizer and of a model folder: no code assumes numbers.
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
  std::int32_t unknown = kNoToken;  // <unk>, in place of text that the tokenizer does not know
  std::int32_t begin = kNoToken;    // <s>
  std::int32_t end = kNoToken;      // </s>
  std::int32_t pad = kNoToken;      // <pad>

  bool contains(std::int32_t id) const {
    return id != kNoToken && (id == unknown || id == begin || id == end || id == pad);
  }
  bool operator==(const SpecialTokens&) const = default;
};

// The ids that new tokenizers get unless others are asked for.
inline constexpr SpecialTokens kUsualSpecialTokens = {.unknown = 0, .begin = 1, .end = 2};

// The special tokens of a decoder.
struct DecoderTokens {
  // The decoder reads it before the first token of a target. None: a prefix begins each text.
  std::int32_t start = kNoToken;
  // Ends a target. None: only its maximum length ends a text.
  std::int32_t end = kNoToken;
  // Every target begins with it: a language code, for example.
  std::int32_t forced_first = kNoToken;
  Tokens suppressed = {};  // never generated; ascending

  // The target as the decoder is to generate it, without its end.
  Tokens begun(std::span<const std::int32_t> target) const {
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

// <s> text </s>, the text cut where all of it would be longer than `longest`, which is at least 2.
inline Tokens enclosed(std::span<const std::int32_t> text, const SpecialTokens& special,
                       std::int64_t longest) {
  const auto kept = text.first(std::min(text.size(), static_cast<std::size_t>(longest - 2)));
  Tokens all{special.begin};
  all.insert(all.end(), kept.begin(), kept.end());
  all.push_back(special.end);
  return all;
}

}  // namespace nunchi
