#include "nunchi/inference/streamed_text.h"

#include <algorithm>

namespace nunchi {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";
// From this number of unsettled tokens on, we try to settle them.
constexpr std::size_t kMaxUnsettled = 16;
// Bytes of the longest UTF-8 character; each byte may be a token.
constexpr std::size_t kMaxCharacterBytes = 4;

}  // namespace

std::string text_of(const Tokenizer& tokenizer, std::span<const std::int32_t> tokens) {
  if (tokenizer.line_end() != tokenizer.special().end) return tokenizer.decode(tokens);
  std::string text;
  for (std::size_t begin = 0; begin <= tokens.size();) {
    const auto rest = tokens.subspan(begin);
    const auto end = std::ranges::find(rest, tokenizer.line_end());
    const auto length = static_cast<std::size_t>(end - rest.begin());
    text += tokenizer.decode(rest.first(length));
    if (end != rest.end()) text += '\n';
    begin += length + 1;
  }
  return text;
}

StreamedText::StreamedText(const Tokenizer& tokenizer)
    : tokenizer_(tokenizer), ends_are_breaks_(tokenizer.line_end() == tokenizer.special().end) {}

void StreamedText::add(std::span<const std::int32_t> tokens) {
  for (const std::int32_t token : tokens) {
    if (ends_are_breaks_ && token == tokenizer_.line_end()) {
      end_line();
    } else {
      open_.push_back(token);
    }
  }
  count_ += tokens.size();
  decode();
}

// Lines are decoded independently of each other.
void StreamedText::end_line() {
  decode();
  text_ += '\n';
  settled_ = text_.size();
  open_.clear();
  context_tokens_ = context_bytes_ = 0;
}

void StreamedText::decode() {
  const std::string text = tokenizer_.decode(open_);
  text_.resize(settled_);
  text_ += std::string_view(text).substr(std::min(context_bytes_, text.size()));
  if (open_.size() < context_tokens_ + kMaxUnsettled) return;
  // Keep as context the fewest last tokens whose text has no incomplete character and ends text_.
  for (std::size_t count = 1; count <= kMaxCharacterBytes; ++count) {
    const Tokens ending(open_.end() - static_cast<std::ptrdiff_t>(count), open_.end());
    const std::string text_of_ending = tokenizer_.decode(ending);
    const bool complete =
        !text_of_ending.empty() && text_of_ending.find(kReplacement) == text_of_ending.npos;
    if (!complete || !text_.ends_with(text_of_ending)) continue;
    settled_ = text_.size();
    open_ = ending;
    context_tokens_ = count;
    context_bytes_ = text_of_ending.size();
    return;
  }
}

}  // namespace nunchi
