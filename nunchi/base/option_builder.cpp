#include "nunchi/base/option_builder.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "nunchi/base/printable.h"

namespace nunchi::option_text {
namespace {

constexpr std::size_t kMaxTextBytes = 1 << 20;

// The offset of the first byte that is not part of a valid character; npos if there is none.
std::size_t invalid_utf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (std::size_t offset = 0; offset < text.size();) {
    utf8proc_int32_t character = 0;
    const auto left = static_cast<utf8proc_ssize_t>(text.size() - offset);
    const utf8proc_ssize_t length = utf8proc_iterate(bytes + offset, left, &character);
    if (length <= 0) return offset;
    offset += static_cast<std::size_t>(length);
  }
  return text.npos;
}

}  // namespace

int line_at(std::string_view text, std::size_t offset) {
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + offset, '\n'));
}

void check_text(std::string_view text, const Fail& fail) {
  if (text.size() > kMaxTextBytes) fail(0, "options must not be larger than 1 MiB.");
  if (const std::size_t zero = text.find('\0'); zero != text.npos) {
    fail(line_at(text, zero), "there is a zero byte; is this a text file?");
  }
  if (const std::size_t wrong = invalid_utf8(text); wrong != text.npos) {
    fail(line_at(text, wrong), "this is not valid UTF-8.");
  }
}

bool TreeBuilder::expects_key() const {
  return !open_.empty() && open_.back().value.kind == Kind::map && !open_.back().has_key;
}

void TreeBuilder::key(std::string text, int line) {
  Level& level = open_.back();
  check_escapes(text, line);
  if (text.size() > kMaxKeyBytes) fail_(line, std::string(kTooLong));
  if (!level.keys.insert(text).second) {
    fail_(line, "the key '" + printable(text) + "' appears twice.");
  }
  level.key = std::move(text);
  level.key_line = line;
  level.has_key = true;
}

void TreeBuilder::scalar(Kind kind, std::string text, int line) {
  check_escapes(text, line);
  OptionValue value = value_of(kind, line);
  value.text = std::move(text);
  add(std::move(value));
}

void TreeBuilder::open(Kind kind, int line) {
  if (origin_.depth + open_.size() >= kMaxDepth) fail_(line, std::string(kTooDeep));
  open_.push_back({.value = value_of(kind, line)});
}

void TreeBuilder::close() {
  OptionValue value = std::move(open_.back().value);
  open_.pop_back();
  add(std::move(value));
}

// \0 would cut off file names, and yaml-cpp turns \_ and \N into single bytes that are not UTF-8.
void TreeBuilder::check_escapes(const std::string& text, int line) const {
  if (text.find('\0') != text.npos || invalid_utf8(text) != text.npos) {
    fail_(line, "an escape (\\) does not make a valid character.");
  }
}

OptionValue TreeBuilder::value_of(Kind kind, int line) const {
  OptionValue value;
  value.kind = kind;
  value.source = origin_.source;
  value.line = line;
  return value;
}

void TreeBuilder::add(OptionValue value) {
  if (open_.empty()) {
    root_ = std::move(value);
    return;
  }
  Level& level = open_.back();
  if (std::exchange(level.has_key, false)) {
    value.key = std::move(level.key);
    value.line = level.key_line;
  }
  level.value.items.push_back(std::move(value));
}

}  // namespace nunchi::option_text
