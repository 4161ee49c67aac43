// Any bytes: make_tokenizer() throws an Error, or returns a tokenizer that encodes any text
// into tokens of the vocabulary, never <s> or </s>, and decodes them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/text/sentencepiece.h"
#include "nunchi/text/unicode.h"

namespace {

void check_encoding(const nunchi::Tokenizer& tokenizer, const std::string& text) {
  const nunchi::Tokens tokens = tokenizer.encode(text);
  for (const std::int32_t id : tokens) {
    const bool special = id == tokenizer.special().begin || id == tokenizer.special().end;
    if (id < 0 || id >= tokenizer.vocabulary() || special) __builtin_trap();
  }
  if (!nunchi::is_valid_utf8(tokenizer.decode(tokens))) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  std::unique_ptr<nunchi::Tokenizer> tokenizer;
  try {
    tokenizer = nunchi::make_tokenizer(bytes, "fuzz");
  } catch (const nunchi::Error&) {
    return 0;
  }
  std::string all_pieces;
  nunchi::Tokens ids;
  const auto count = std::min<std::int64_t>(tokenizer->vocabulary(), 300);
  for (std::int32_t id = 0; id < count; ++id) {
    all_pieces += tokenizer->piece(id);
    if (id % 5 == 4) all_pieces += ' ';
    ids.push_back(id);
  }
  check_encoding(*tokenizer, all_pieces);
  check_encoding(*tokenizer, "abba <s> </s>  <x>\u2581 눈치 \x01" + std::string(3, '\0') + "\xFF");
  check_encoding(*tokenizer, std::string(200, 'a'));
  check_encoding(*tokenizer, bytes);
  tokenizer->decode(ids);
  return 0;
}
