// Any bytes: make_plain_tokenizer() throws an Error, or returns a tokenizer that encodes any text
// into tokens of the vocabulary, never <s> or </s>, and decodes them.
#include <cstddef>
#include <cstdint>
#include <string>

#include "nunchi/base/error.h"
#include "nunchi/text/plain_tokenizer.h"
#include "nunchi/text/unicode.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  std::unique_ptr<nunchi::Tokenizer> tokenizer;
  try {
    tokenizer = nunchi::make_plain_tokenizer(bytes, "fuzz");
  } catch (const nunchi::Error&) {
    return 0;
  }
  for (const std::string& text : {bytes, std::string("abba 눈치 \n\xFF")}) {
    const nunchi::Tokens tokens = tokenizer->encode(text);
    for (const std::int32_t id : tokens) {
      const bool special = id == tokenizer->special().begin || id == tokenizer->special().end;
      if (id < 0 || id >= tokenizer->vocabulary() || special) __builtin_trap();
      tokenizer->piece(id);
    }
    if (!nunchi::is_valid_utf8(tokenizer->decode(tokens))) __builtin_trap();
  }
  return 0;
}
